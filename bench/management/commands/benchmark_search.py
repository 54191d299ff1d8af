from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, format_markdown_table, parse_positive_number
from bench.speed.search_corpus import delete_collection, load_beir_corpus, load_synthetic_corpus
from bench.speed.search_speed import DEPTH, BenchmarkRun, measure_search_speed
from evaluation.statistics import percentile
from retrieval.management.prepared import MigratedDatabaseCommand

RATIOS = {"ts_rank_over_lexical": ("ts_rank", "lexical"), "exact_over_vector": ("exact_vector", "vector")}


class Command(MeasuringCommand, MigratedDatabaseCommand):
    help = (
        "Make up a corpus of N passages in a collection of its own, or take one, time every part of a search over it "
        "beside ts_rank and a comparison of all vectors, and delete it. Run it beside an otherwise idle site."
    )
    section = "search"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--chunks", type=parse_positive_number, default=20_000, metavar="N", help="Passages (20,000)."
        )
        parser.add_argument(
            "--real",
            type=Path,
            metavar="FOLDER",
            help="The first N documents and the queries of a set in BEIR's format, instead of made-up ones.",
        )
        parser.add_argument("--queries", type=parse_positive_number, default=100, metavar="M", help="Questions (100).")
        parser.add_argument(
            "--askers",
            type=parse_positive_number,
            nargs="+",
            default=[],
            metavar="N",
            help="Also searches a second by N at once.",
        )
        parser.add_argument("--keep", action="store_true", help="Leave the corpus for the next run of the same size.")
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> BenchmarkRun:
        folder = options["real"]
        loaded = (
            load_synthetic_corpus(options["chunks"], report)
            if folder is None
            else load_beir_corpus(folder, options["chunks"], report)
        )
        try:
            return measure_search_speed(loaded, options["queries"], options["askers"], report)
        finally:
            if not options["keep"]:
                delete_collection(loaded.collection)

    def as_markdown(self, measured: BenchmarkRun) -> str:
        stages = format_markdown_table(
            ["stage", "p50 ms", "p95 ms"],
            [[name, f"{times.p50:.1f}", f"{times.p95:.1f}"] for name, times in measured.stages().items()],
        )
        ratios = "; ".join(f"{name.replace('_', ' ')} {measured.ratio(*of):.1f}" for name, of in RATIOS.items())
        largest = {name: size for name, size in measured.table_bytes.items() if size >= 10 * 2**20}
        sizes = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in largest.items())
        several = format_markdown_table(
            ["askers at once", "searches a second", "p50 ms", "p95 ms"],
            [
                [each.askers, f"{each.per_second:.1f}", f"{each.times.p50:.0f}", f"{each.times.p95:.0f}"]
                for each in measured.throughput
            ],
        )
        return (
            f"{measured.chunks:,} passages, {measured.question_count} questions, each matching "
            f"{percentile(measured.matching, 50):,.0f} passages (median).\n\n{stages}\n\n"
            f"Ratios: {ratios}. Recall@{DEPTH} of the vector index: {_average(measured.recall):.2f}. Sizes: {sizes}."
        ) + (f"\n\n{several}" if measured.throughput else "")

    def as_json(self, measured: BenchmarkRun) -> dict[str, Any]:
        return {
            "chunks": measured.chunks,
            "queries": measured.question_count,
            "build_seconds": measured.build_seconds and round(measured.build_seconds, 1),
            "matching_chunks_p50": percentile(measured.matching, 50),
            "stages": {
                stage: {"p50_ms": round(times.p50, 3), "p95_ms": round(times.p95, 3)}
                for stage, times in measured.stages().items()
            },
            "ratios": {name: round(measured.ratio(*stages), 3) for name, stages in RATIOS.items()},
            f"recall@{DEPTH}": round(_average(measured.recall), 4),
            "throughput": [
                {
                    "askers": each.askers,
                    "searches_per_second": round(each.per_second, 2),
                    "p50_ms": round(each.times.p50, 3),
                    "p95_ms": round(each.times.p95, 3),
                }
                for each in measured.throughput
            ],
            "bytes": dict(measured.table_bytes),
        }


def _average(values: list[float]) -> float:
    return sum(values) / len(values)
