"""How fast search is at a size that is chosen."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from bench.reporting import positive, replace_section, table
from bench.speed.askers import measure
from bench.speed.search_corpus import load, remove
from bench.speed.search_speed import DEPTH, BenchmarkRun, run
from evaluation.exceptions import EvaluationError
from evaluation.statistics import percentile
from retrieval.exceptions import RetrievalError
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand

RATIOS = {"ts_rank_over_lexical": ("ts_rank", "lexical"), "exact_over_vector": ("exact_vector", "vector")}


class Command(PreparedCommand):
    help = (
        "Make up a corpus of N passages in a collection of its own, time every part of a search over it beside ts_rank "
        "and a comparison of all vectors, and delete it. Run it beside an otherwise idle site."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--chunks", type=positive, default=20_000, metavar="N", help="Passages (20,000).")
        parser.add_argument("--queries", type=positive, default=100, metavar="M", help="Questions (100).")
        parser.add_argument(
            "--askers", type=positive, nargs="+", default=[], metavar="N", help="Also searches a second by N at once."
        )
        parser.add_argument(
            "--processes", type=positive, nargs="+", default=[1], metavar="N", help="Of the askers (1)."
        )
        parser.add_argument("--keep", action="store_true", help="Leave the corpus for the next run of the same size.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")
        parser.add_argument("--write", type=Path, metavar="FILE", help="Put the table into this Markdown page.")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        try:
            loaded = load(options["chunks"], bar.show)
            try:
                measured = run(loaded, options["queries"], bar.show)
                measured.throughput = [
                    measure(loaded.collection.pk, (loaded.corpus.size, loaded.corpus.seed), askers, processes)
                    for processes in options["processes"]
                    for askers in options["askers"]
                ]
            finally:
                if not options["keep"]:
                    remove(loaded.collection)
            if options["write"]:
                replace_section(options["write"], "search", _as_markdown(measured))
        except (EvaluationError, RetrievalError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.clear()
        self.stdout.write(json.dumps(_as_json(measured)) if options["json"] else _as_markdown(measured))


def _as_markdown(measured: BenchmarkRun) -> str:
    stages = table(
        ["stage", "p50 ms", "p95 ms"],
        [[name, f"{times.p50:.1f}", f"{times.p95:.1f}"] for name, times in measured.stages().items()],
    )
    ratios = "; ".join(f"{name.replace('_', ' ')} {measured.ratio(*of):.1f}" for name, of in RATIOS.items())
    largest = {name: size for name, size in measured.table_bytes.items() if size >= 10 * 2**20}
    sizes = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in largest.items())
    several = table(
        ["askers at once", "processes", "searches a second", "p50 ms", "p95 ms"],
        [
            [each.askers, each.processes, f"{each.per_second:.1f}", f"{each.times.p50:.0f}", f"{each.times.p95:.0f}"]
            for each in measured.throughput
        ],
    )
    return (
        f"{measured.chunks:,} passages, {measured.questions} questions, each matching "
        f"{percentile(measured.matching, 50):,.0f} passages (median).\n\n{stages}\n\n"
        f"Ratios: {ratios}. Recall@{DEPTH} of the vector index: {_mean(measured.recall):.2f}. Sizes: {sizes}."
    ) + (f"\n\n{several}" if measured.throughput else "")


def _as_json(measured: BenchmarkRun) -> dict[str, Any]:
    return {
        "chunks": measured.chunks,
        "queries": measured.questions,
        "build_seconds": measured.build_seconds and round(measured.build_seconds, 1),
        "matching_chunks_p50": percentile(measured.matching, 50),
        "stages": {
            stage: {"p50_ms": round(times.p50, 3), "p95_ms": round(times.p95, 3)}
            for stage, times in measured.stages().items()
        },
        "ratios": {name: round(measured.ratio(*stages), 3) for name, stages in RATIOS.items()},
        f"recall@{DEPTH}": round(_mean(measured.recall), 4),
        "throughput": [
            {
                "askers": each.askers,
                "processes": each.processes,
                "searches_per_second": round(each.per_second, 2),
                "p50_ms": round(each.times.p50, 3),
                "p95_ms": round(each.times.p95, 3),
            }
            for each in measured.throughput
        ],
        "bytes": dict(measured.table_bytes),
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
