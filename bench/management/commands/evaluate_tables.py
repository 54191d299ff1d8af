"""How many tables of printed files are found, how many of their cells are right, and what is taken for a table."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.tables.scoring import found_tables, read_expected, score_tables
from retrieval.documents.extraction import extract
from retrieval.exceptions import DocumentRejected


class Command(BaseCommand):
    help = (
        "Read the PDF files of folders and compare their tables with the CSV files beside them: NAME.csv, or NAME.1.csv"
        ", NAME.2.csv and so on, each with the names of its columns first. A file without any holds no table."
    )
    # Neither the database nor any backend takes part.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        files = sorted(path for folder in options["folders"] for path in folder.glob("*.pdf"))
        if not files:
            raise CommandError("There is no PDF file in these folders.")
        scores = []
        for path in files:
            try:
                found = found_tables(extract(path.read_bytes(), path.name))
            except DocumentRejected as error:
                raise CommandError(str(error)) from error
            scores.append(score_tables(path.stem, read_expected(path), found))
        if options["json"]:
            self.stdout.write(json.dumps([asdict(score) for score in scores], ensure_ascii=False))
            return
        width = max(len(score.name) for score in scores)
        for score in scores:
            self.stdout.write(
                f"{score.name:<{width}}  tables {score.found} of {score.expected}  "
                f"cells {score.right} of {score.cells}{f'  false {len(score.false)}' if score.false else ''}"
            )
            for row in score.false:
                self.stdout.write(f"{'':<{width}}    taken for a table: {row}")
        cells, right = sum(score.cells for score in scores), sum(score.right for score in scores)
        met, expected = sum(score.found for score in scores), sum(score.expected for score in scores)
        share = f" ({100 * right / cells:.1f} %)" if cells else ""
        self.stdout.write(
            f"{len(files)} files: tables {met} of {expected}, cells {right} of {cells}{share}, "
            f"cells written {sum(score.written for score in scores)}, "
            f"false tables {sum(len(score.false) for score in scores)}"
        )
