"""Where the time of ingestion goes."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, positive, table
from bench.speed.ingestion import IngestionRun, run
from retrieval.management.prepared import PreparedCommand


class Command(MeasuringCommand, PreparedCommand):
    help = "Read and embed files of a folder, and print the time of each stage; nothing is stored."
    section = "ingestion"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER")
        parser.add_argument("--files", type=positive, default=60, metavar="N", help="So many of its files (60).")
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> IngestionRun:
        return run(options["folder"], options["files"], report)

    def as_markdown(self, measured: IngestionRun) -> str:
        stages, passages = measured.stages, measured.passages
        rows = [
            (stage, f"{1000 * seconds / passages:.2f}", f"{1000 * stages.processor[stage] / passages:.2f}")
            for stage, seconds in stages.seconds.items()
        ]
        return (
            f"{measured.files} files, {passages} passages of {measured.tokens / passages:.0f} tokens.\n\n"
            + table(("stage", "ms a passage", "of processor"), rows)
            + f"\n\nThe embedder reads {measured.tokens / stages.seconds['embed']:,.0f} tokens a second,"
            f" {measured.tokens / stages.processor['embed']:,.0f} a second of processor."
        )

    def as_json(self, measured: IngestionRun) -> dict[str, Any]:
        return asdict(measured)
