"""Where the time of ingestion goes."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from bench.reporting import positive, replace_section, table
from bench.speed.ingestion import IngestionRun, run
from evaluation.exceptions import EvaluationError
from retrieval.exceptions import RetrievalError
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand


class Command(PreparedCommand):
    help = "Read and embed files of a folder, and print the time of each stage; nothing is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="FOLDER")
        parser.add_argument("--files", type=positive, default=60, metavar="N", help="So many of its files (60).")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")
        parser.add_argument("--write", type=Path, metavar="FILE", help="Put the table into this Markdown page.")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        try:
            measured = run(options["folder"], options["files"], bar.show)
            if options["write"]:
                replace_section(options["write"], "ingestion", _as_markdown(measured))
        except (EvaluationError, RetrievalError, OSError) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.clear()
        self.stdout.write(json.dumps(asdict(measured)) if options["json"] else _as_markdown(measured))


def _as_markdown(measured: IngestionRun) -> str:
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
