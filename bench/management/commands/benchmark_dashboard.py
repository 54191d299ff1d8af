"""How fast the figures are at a number of answers that is chosen."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from bench.reporting import positive, replace_section, table
from bench.speed.dashboard import DashboardRun, run
from bench.speed.synthetic_answers import load, remove
from evaluation.exceptions import EvaluationError
from retrieval.exceptions import RetrievalError
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand


class Command(PreparedCommand):
    help = (
        "Make up N answers of the last 90 days with their scores, marks, citations and an experiment, time the "
        "admin's pages of figures and the scheduled tasks over them, and delete them. Until then they are seen in the "
        "admin. Run it beside an otherwise idle site."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--answers", type=positive, default=100_000, metavar="N", help="Made up (100,000).")
        parser.add_argument("--rounds", type=positive, default=7, metavar="M", help="Times each is timed (7).")
        parser.add_argument("--keep", action="store_true", help="Leave the answers; the next run deletes them.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")
        parser.add_argument("--write", type=Path, metavar="FILE", help="Put the table into this Markdown page.")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        try:
            loaded = load(options["answers"], bar.show)
            try:
                measured = run(loaded, options["rounds"], bar.show)
            finally:
                if not options["keep"]:
                    remove()
            if options["write"]:
                replace_section(options["write"], "dashboard", _as_markdown(measured))
        except (EvaluationError, RetrievalError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.clear()
        self.stdout.write(json.dumps(_as_json(measured)) if options["json"] else _as_markdown(measured))


def _as_markdown(measured: DashboardRun) -> str:
    rows = [
        [kind, name, f"{times.p50:.0f}", f"{times.p95:.0f}"] for (kind, name), times in measured.percentiles().items()
    ]
    return f"{measured.answers:,} answers of 90 days.\n\n{table(['', 'timed', 'p50 ms', 'p95 ms'], rows)}"


def _as_json(measured: DashboardRun) -> dict[str, Any]:
    return {
        "answers": measured.answers,
        "build_seconds": round(measured.build_seconds, 1),
        "timed": [
            {"kind": kind, "name": name, "p50_ms": round(times.p50, 1), "p95_ms": round(times.p95, 1)}
            for (kind, name), times in measured.percentiles().items()
        ],
    }
