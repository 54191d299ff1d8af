from __future__ import annotations

import resource
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, format_markdown_table, parse_positive_number
from bench.speed.streams import ServerLoad, StreamBenchmark, measure_streams
from evaluation.statistics import round_figures
from retrieval.management.prepared import MigratedDatabaseCommand

MOMENTS = {"first_byte": "first sign of life", "searched": "sources", "token": "first word", "completed": "end"}


class Command(MeasuringCommand, MigratedDatabaseCommand):
    help = (
        "Start a web server with a model that writes slowly, read N answers at once over HTTP, then let N readers "
        "vanish together; print memory, database connections and times. Run it on an otherwise idle machine."
    )
    section = "streams"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--streams", type=parse_positive_number, default=200, metavar="N", help="Open at once (200)."
        )
        parser.add_argument("--tokens", type=parse_positive_number, default=150, help="Words of an answer (150).")
        parser.add_argument("--token-seconds", type=float, default=0.2, help="Between two of them (0.2).")
        parser.add_argument(
            "--over", type=float, default=10.0, metavar="SECONDS", help="In which they are opened (10)."
        )
        parser.add_argument(
            "--quoted", action="store_true", help="No model: answers are quoted, and the site's own work is measured."
        )
        super().add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        # Each stream needs three open files: the reader's connection, the web process's end of it, and one to the
        # model.
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.section = "quoted streams" if options["quoted"] else self.section
        self.errors: list[str] = []
        super().handle(*args, **options)
        if self.errors:
            raise CommandError(f"{len(self.errors)} streams failed, for example: {self.errors[0]}")

    def measure(self, options: dict[str, Any], report: Report) -> StreamBenchmark:
        measured = measure_streams(
            options["streams"],
            tokens=options["tokens"],
            token_seconds=options["token_seconds"],
            over_seconds=options["over"],
            quoted=options["quoted"],
        )
        self.errors = measured.errors
        return measured

    def as_markdown(self, measured: StreamBenchmark) -> str:
        times = [
            [name, f"{times.p50:.2f}", f"{times.p95:.2f}"]
            for moment, name in MOMENTS.items()
            if (times := measured.compute_wait_percentiles(moment))
        ]
        moments = {
            "before": measured.before,
            f"{measured.streams} streams, at most": measured.peak,
            "after them": measured.after,
            f"after {measured.streams} readers vanished": measured.settled,
        }
        loads = [[name, f"{load.memory_mib:.0f}", str(load.connections)] for name, load in moments.items()]
        database = "unknown" if measured.database_ms is None else f"{measured.database_ms:.0f} ms"
        return "\n\n".join(
            [
                f"{measured.streams} streams, {len(measured.errors)} failed.",
                format_markdown_table(["seconds to the", "p50", "p95"], times),
                format_markdown_table(["web server", "memory, MiB", "database connections"], loads),
                f"Processor time of a stream: web server {measured.cpu_ms:.0f} ms, database {database}, "
                f"readers{'' if measured.quoted else ' and model'} {measured.reader_cpu_ms:.0f} ms.",
                f"All readers gone at once: answers were written on for {measured.stopped_seconds:.1f} s.",
            ]
        )

    def as_json(self, measured: StreamBenchmark) -> dict[str, Any]:
        return {
            "streams": measured.streams,
            "errors": len(measured.errors),
            "seconds": {
                moment: round_figures(times, 3)
                for moment in MOMENTS
                if (times := measured.compute_wait_percentiles(moment))
            },
            "cpu_ms_per_stream": round(measured.cpu_ms, 1),
            "database_ms_per_stream": None if measured.database_ms is None else round(measured.database_ms, 1),
            "readers_ms_per_stream": round(measured.reader_cpu_ms, 1),
            "before": _describe_load(measured.before),
            "peak": _describe_load(measured.peak),
            "after": _describe_load(measured.after),
            "vanished": {
                "readers": len(measured.vanished),
                "stopped_seconds": round(measured.stopped_seconds, 2),
                **_describe_load(measured.settled),
            },
            "statuses": measured.statuses,
        }


def _describe_load(load: ServerLoad) -> dict[str, Any]:
    return {"memory_mib": round(load.memory_mib, 1), "database_connections": load.connections}
