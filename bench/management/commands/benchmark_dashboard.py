"""How fast the figures are at a number of answers that is chosen."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, positive, table
from bench.speed.dashboard import DashboardRun, run
from bench.speed.synthetic_answers import load, remove
from retrieval.management.prepared import PreparedCommand


class Command(MeasuringCommand, PreparedCommand):
    help = (
        "Make up N answers of the last 90 days with their scores, marks, sources and an experiment, time the "
        "admin's pages of figures and the scheduled tasks over them, and delete them. Until then they are seen in the "
        "admin. Run it beside an otherwise idle site."
    )
    section = "dashboard"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--answers", type=positive, default=100_000, metavar="N", help="Made up (100,000).")
        parser.add_argument("--rounds", type=positive, default=7, metavar="M", help="Times each is timed (7).")
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> DashboardRun:
        loaded = load(options["answers"], report)
        try:
            return run(loaded, options["rounds"], report)
        finally:
            remove()

    def as_markdown(self, measured: DashboardRun) -> str:
        rows = [
            [kind, name, f"{times.p50:.0f}", f"{times.p95:.0f}"]
            for (kind, name), times in measured.percentiles().items()
        ]
        return f"{measured.answers:,} answers of 90 days.\n\n{table(['', 'timed', 'p50 ms', 'p95 ms'], rows)}"

    def as_json(self, measured: DashboardRun) -> dict[str, Any]:
        return {
            "answers": measured.answers,
            "build_seconds": round(measured.build_seconds, 1),
            "timed": [
                {"kind": kind, "name": name, "p50_ms": round(times.p50, 1), "p95_ms": round(times.p95, 1)}
                for (kind, name), times in measured.percentiles().items()
            ],
        }
