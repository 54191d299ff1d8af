"""How well search ranks, on test sets in BEIR's form."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from evaluation import metrics
from evaluation.beir import read_test_set
from evaluation.corpora import configuration_of, load
from evaluation.exceptions import EvaluationError
from evaluation.retrieval_runs import DEFAULT, METHODS, METRICS, MethodRun, SetRun, check_depth, rerankers, run
from retrieval.exceptions import RetrievalError

BAR_WIDTH = 24


class Command(BaseCommand):
    help = (
        "Load test sets in BEIR's form, each into a collection of its own, and print how well each method ranks them: "
        "means over the queries with 95 % bootstrap intervals, and milliseconds per stage."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="With corpus.jsonl and queries.jsonl.")
        parser.add_argument("--qrels", type=Path, metavar="FILE", help="Judgements, by path or by name in DIR.")
        parser.add_argument("--methods", default=",".join(METHODS), help="Separated by commas; all when left out.")
        parser.add_argument(
            "--reranker",
            metavar="R",
            help=f"For every method, one of: {', '.join(rerankers())}. The default's own, "
            "and none for the other methods, when left out.",
        )
        parser.add_argument("--limit", type=_positive, metavar="N", help="Only the first N queries; the whole corpus.")
        parser.add_argument("--chunked", action="store_true", help="Cut documents as the site does; best chunk counts.")
        parser.add_argument(
            "--language", default="", help="Of the texts: english, dutch, … Told by the set if left out."
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        methods = _methods(options["methods"])
        reranker = options["reranker"]
        if reranker is not None and reranker not in rerankers():
            raise CommandError(f"There is no reranker {reranker!r}: it is one of {', '.join(rerankers())}.")
        bar = _Bar(self.stderr)
        runs = []
        try:
            check_depth()
            # All are read before the first is searched: a misspelt folder shows at once, not after an hour.
            test_sets = [read_test_set(folder, options["qrels"]) for folder in options["folders"]]
            configurations = [configuration_of(test_set, options["language"]) for test_set in test_sets]
            for test_set, configuration in zip(test_sets, configurations, strict=True):
                if test_set.unknown_documents:
                    bar.clear()
                    self.stderr.write(
                        f"{test_set.name}: {test_set.unknown_documents} relevant documents are not in the corpus."
                    )
                collection = load(test_set, configuration=configuration, chunked=options["chunked"], report=bar.show)
                runs.append(
                    run(test_set, collection, methods, reranker=reranker, limit=options["limit"], report=bar.show)
                )
                if not options["json"]:
                    bar.clear()
                    self._print(runs[-1])
        except (EvaluationError, RetrievalError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.clear()
        if options["json"]:
            self.stdout.write(json.dumps({"sets": [_as_json(run) for run in runs]}, ensure_ascii=False))
        elif len(runs) > 1:
            self._print_means(runs)

    def _print(self, run: SetRun) -> None:
        self.stdout.write(f"{run.name}: {run.documents} documents, {run.queries} queries")
        baseline = run.methods.get(DEFAULT)
        rows = []
        for name, method in run.methods.items():
            intervals = (method.interval(metric) for metric in METRICS)
            latency = method.latency()
            times = (latency.get(stage) for stage in ("lexical", "vector", "rerank", "total"))
            rows.append(
                [
                    name,
                    *(f"{interval.mean:.3f} [{interval.low:.3f} {interval.high:.3f}]" for interval in intervals),
                    _difference(method, baseline) if baseline is not method else "",
                    *(f"{time.p50:.1f} / {time.p95:.1f}" if time else "-" for time in times),
                ]
            )
        header = ["method", *METRICS, "ndcg@10 - default", "lexical ms p50/p95", "vector ms", "rerank ms", "total ms"]
        self._print_table(header, rows)

    def _print_means(self, runs: Sequence[SetRun]) -> None:
        self.stdout.write(f"Means of {len(runs)} sets, each counting once")
        rows = []
        for name in runs[0].methods:
            of_sets = [run.methods[name] for run in runs]
            means = (sum(run.interval(metric).mean for run in of_sets) / len(of_sets) for metric in METRICS)
            rows.append([name, *(f"{mean:.3f}" for mean in means)])
        self._print_table(["method", *METRICS], rows)

    def _print_table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
        for name, *cells in (header, *rows):
            padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            self.stdout.write("  ".join([name.ljust(widths[0]), *padded]).rstrip())
        self.stdout.write("")


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0.")
    return number


def _methods(names: str) -> list[str]:
    """The methods named, each once. Raises: CommandError for none, or an unknown one."""
    methods = list(dict.fromkeys(name for part in names.split(",") if (name := part.strip())))
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise CommandError(
            f"There is no method {', '.join(map(repr, unknown)) or 'to run'}: they are {', '.join(METHODS)}."
        )
    return methods


def _difference(method: MethodRun, baseline: MethodRun | None) -> str:
    if baseline is None:
        return "-"
    difference = metrics.paired_difference(method.scores["ndcg@10"], baseline.scores["ndcg@10"])
    return f"{difference.mean:+.3f} [{difference.low:+.3f} {difference.high:+.3f}]"


def _as_json(run: SetRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "documents": run.documents,
        "queries": run.queries,
        "methods": {name: _method_as_json(method) for name, method in run.methods.items()},
    }


def _method_as_json(method: MethodRun) -> dict[str, Any]:
    figures: dict[str, Any] = {
        metric: {name: round(value, 4) for name, value in asdict(method.interval(metric)).items()} for metric in METRICS
    }
    latency = {
        stage: {name: round(value, 2) for name, value in asdict(percentiles).items()}
        for stage, percentiles in method.latency().items()
    }
    return figures | {"latency_ms": latency}


class _Bar:
    """What is being done and how far it is, on one line of a terminal; elsewhere a line now and then."""

    def __init__(self, output: OutputWrapper) -> None:
        self._output = output
        self._is_terminal = output.isatty()
        self._last = 0.0
        self._width = 0

    def show(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not total or now - self._last < (0.1 if self._is_terminal else 10.0):
            return
        self._last = now
        filled = BAR_WIDTH * done // total
        line = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {what} {done} of {total}"
        if self._is_terminal:
            self._output.write(f"\r{line:<{self._width}}", ending="")
            self._width = len(line)
        else:
            self._output.write(line)
        self._output.flush()

    def clear(self) -> None:
        if self._width:
            self._output.write("\r" + " " * self._width + "\r", ending="")
            self._width = 0
