from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from bench.management.measuring import MeasuringCommand
from bench.reporting import Report
from bench.tables.scoring import TableScore, list_found_tables, read_expected_tables, score_tables
from retrieval.documents.extraction import extract


class Command(MeasuringCommand):
    help = (
        "Read the PDF files of folders and compare their tables with the CSV files beside them: NAME.csv, or NAME.1.csv"
        ", NAME.2.csv and so on, each with the names of its columns first. A file without any holds no table."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> list[TableScore]:
        files = sorted(path for folder in options["folders"] for path in folder.glob("*.pdf"))
        if not files:
            raise CommandError("There is no PDF file in these folders.")
        return [
            score_tables(
                path.stem, read_expected_tables(path), list_found_tables(extract(path.read_bytes(), path.name))
            )
            for path in files
        ]

    def as_markdown(self, scores: Sequence[TableScore]) -> str:
        lines = []
        width = max(len(score.name) for score in scores)
        for score in scores:
            lines.append(
                f"{score.name:<{width}}  tables {score.found} of {score.expected}  "
                f"cells {score.right} of {score.cells}{f'  false {len(score.false)}' if score.false else ''}"
            )
            lines += [f"{'':<{width}}    taken for a table: {row}" for row in score.false]
        cells, right = sum(score.cells for score in scores), sum(score.right for score in scores)
        met, expected = sum(score.found for score in scores), sum(score.expected for score in scores)
        share = f" ({100 * right / cells:.1f} %)" if cells else ""
        lines.append(
            f"{len(scores)} files: tables {met} of {expected}, cells {right} of {cells}{share}, "
            f"cells written {sum(score.written for score in scores)}, "
            f"false tables {sum(len(score.false) for score in scores)}"
        )
        return "\n".join(lines)

    def as_json(self, scores: Sequence[TableScore]) -> list[dict[str, Any]]:
        return [asdict(score) for score in scores]
