from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from bench.beir import read_test_set
from bench.corpora import choose_configuration, load_test_set_collection
from bench.management.measuring import MeasuringCommand
from bench.ranking import (
    DEFAULT,
    METHODS,
    RankingRun,
    SearchMethodResults,
    check_retrieval_depth,
    list_rerankers,
    measure_rankings,
)
from bench.reporting import Report, format_figure, format_interval, format_markdown_table, parse_positive_number
from bench.statistics import paired_difference
from evaluation.statistics import METRICS, Interval, round_figures
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.types import SearchMethod

# Each search method is compared with RRF, question by question, because almost all products use RRF.
BASELINE = SearchMethod.RRF.value
TIMED = ("lexical", "vector", "rerank", "total")


class Command(MeasuringCommand, MigratedDatabaseCommand):
    help = (
        "Load test sets in BEIR's form, each into a collection of its own, and print how well each method ranks them: "
        "means over the queries with 95 % bootstrap intervals, and milliseconds per stage."
    )
    section = "ranking"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="With corpus.jsonl and queries.jsonl.")
        parser.add_argument("--qrels", type=Path, metavar="FILE", help="Judgements, by path or by name in DIR.")
        parser.add_argument("--methods", default=",".join(METHODS), help="Separated by commas; all when left out.")
        parser.add_argument(
            "--reranker",
            metavar="R",
            help=f"For every method, one of: {', '.join(list_rerankers())}. The default's own, "
            "and none for the other methods, when left out.",
        )
        parser.add_argument(
            "--limit", type=parse_positive_number, metavar="N", help="Only the first N queries; the whole corpus."
        )
        parser.add_argument("--chunked", action="store_true", help="Cut documents as the site does; best chunk counts.")
        parser.add_argument(
            "--language", default="", help="Of the texts: english, dutch, … Told by the set if left out."
        )
        super().add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["reranker"] is not None:
            self.section = f"ranking {options['reranker']}"
        super().handle(*args, **options)

    def measure(self, options: dict[str, Any], report: Report) -> list[RankingRun]:
        methods = _parse_methods(options["methods"])
        reranker = options["reranker"]
        if reranker is not None and reranker not in list_rerankers():
            raise CommandError(f"There is no reranker {reranker!r}: it is one of {', '.join(list_rerankers())}.")
        check_retrieval_depth()
        # All sets are read first, so that a misspelt folder fails at once, not after an hour.
        test_sets = [read_test_set(folder, options["qrels"]) for folder in options["folders"]]
        configurations = [choose_configuration(test_set, options["language"]) for test_set in test_sets]
        runs = []
        for test_set, configuration in zip(test_sets, configurations, strict=True):
            if unknown := test_set.unknown_documents:
                self.stderr.write(f"{test_set.name}: {unknown} relevant documents are not in the corpus.")
            collection = load_test_set_collection(
                test_set, configuration=configuration, chunked=options["chunked"], report=report
            )
            runs.append(
                measure_rankings(
                    test_set, collection, methods, reranker=reranker, limit=options["limit"], report=report
                )
            )
        return runs

    def as_text(self, runs: Sequence[RankingRun]) -> str:
        return "\n\n".join([*map(_format_run, runs), *([_format_means(runs)] if len(runs) > 1 else [])])

    def as_json(self, runs: Sequence[RankingRun]) -> dict[str, Any]:
        return {"sets": [_as_json(run) for run in runs]}

    def as_markdown(self, runs: Sequence[RankingRun]) -> str:
        names = list(runs[0].methods)
        rows = []
        for of_set in runs:
            values = {name: of_set.methods[name].compute_interval("ndcg@10").mean for name in names}
            rows.append(
                [
                    of_set.name,
                    f"{of_set.documents:,}",
                    f"{of_set.queries:,}",
                    *_format_and_mark_best([values[name] for name in names]),
                ]
            )
        for metric in METRICS:
            means = [
                sum(of_set.methods[name].compute_interval(metric).mean for of_set in runs) / len(runs) for name in names
            ]
            rows.append([f"**mean {metric}**", "", "", *_format_and_mark_best(means)])
        tables = [format_markdown_table(["set", "documents", "questions", *names], rows)]
        if DEFAULT in names and BASELINE in names:
            retrievers = [name for name in (SearchMethod.LEXICAL.value, SearchMethod.VECTOR.value) if name in names]
            compared = []
            for of_set in runs:
                default = of_set.methods[DEFAULT]
                of_default = default.compute_interval("ndcg@10")
                mean, low, high = (format_figure(part) for part in (of_default.mean, of_default.low, of_default.high))
                cells = [of_set.name, f"{mean} [{low} {high}]"]
                for name in (BASELINE, *retrievers):
                    cells.append(format_interval(**asdict(_compare_paired(default, of_set.methods[name]))))
                compared.append(cells)
            tables.append(
                format_markdown_table(
                    ["set", f"{DEFAULT} nDCG@10", *(f"− {name}" for name in (BASELINE, *retrievers))], compared
                )
            )
        return "\n\n".join(tables)


def _format_run(run: RankingRun) -> str:
    baseline = run.methods.get(BASELINE)
    rows = []
    for name, method in run.methods.items():
        latency = method.latency()
        times = (latency.get(stage) for stage in TIMED)
        difference = _compare_paired(method, baseline) if baseline is not None and baseline is not method else None
        rows.append(
            [
                name,
                *(str(method.compute_interval(metric)) for metric in METRICS),
                f"{difference.mean:+.3f} [{difference.low:+.3f} {difference.high:+.3f}]" if difference else "",
                *(f"{time.p50:.1f} / {time.p95:.1f}" if time else "-" for time in times),
            ]
        )
    header = ["method", *METRICS, f"ndcg@10 - {BASELINE}", *(f"{stage} ms p50/p95" for stage in TIMED)]
    return f"{run.name}: {run.documents} documents, {run.queries} queries\n\n{format_markdown_table(header, rows)}"


def _format_means(runs: Sequence[RankingRun]) -> str:
    rows = []
    for name in runs[0].methods:
        means = (sum(run.methods[name].compute_interval(metric).mean for run in runs) / len(runs) for metric in METRICS)
        rows.append([name, *(f"{mean:.3f}" for mean in means)])
    return f"Means of {len(runs)} sets, each counting once\n\n{format_markdown_table(['method', *METRICS], rows)}"


def _parse_methods(names: str) -> list[str]:
    methods = list(dict.fromkeys(name for part in names.split(",") if (name := part.strip())))
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise CommandError(
            f"There is no method {', '.join(map(repr, unknown)) or 'to run'}: they are {', '.join(METHODS)}."
        )
    return methods


def _compare_paired(method: SearchMethodResults, baseline: SearchMethodResults) -> Interval:
    return paired_difference(method.scores["ndcg@10"], baseline.scores["ndcg@10"])


def _format_and_mark_best(values: Sequence[float]) -> list[str]:
    best = max(round(value, 3) for value in values)
    return [f"**{format_figure(value)}**" if round(value, 3) == best else format_figure(value) for value in values]


def _as_json(run: RankingRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "documents": run.documents,
        "queries": run.queries,
        "methods": {name: _method_as_json(method, run.methods.get(BASELINE)) for name, method in run.methods.items()},
    }


def _method_as_json(method: SearchMethodResults, baseline: SearchMethodResults | None) -> dict[str, Any]:
    figures: dict[str, Any] = {metric: round_figures(method.compute_interval(metric)) for metric in METRICS}
    if baseline is not None and baseline is not method:
        figures[f"ndcg@10_minus_{BASELINE}"] = round_figures(_compare_paired(method, baseline))
    return figures | {"latency_ms": {stage: round_figures(times, 2) for stage, times in method.latency().items()}}
