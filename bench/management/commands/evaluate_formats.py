"""What comes out of the files of a folder that were ingested, by format, as a table for ``docs/formats.md``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter, defaultdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from retrieval.documents.formats import of_media_type, read_formats
from retrieval.models import Document

_COLUMNS = (
    "files", "read", "characters", "headings", "tables", "rows", "pages", "recognised pages", "pictures", "files in it",
    "told",
)  # fmt: skip


class Command(BaseCommand):
    help = "Print what was read of the documents of a collection, by format, and what is said of those that were not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("collection", help="The slug of a collection into which the folder was ingested.")

    def handle(self, *args: Any, **options: Any) -> None:
        documents = Document.objects.filter(collection__slug=options["collection"], parent=None)
        documents = documents.select_related("text").prefetch_related("tables", "members")
        rows: dict[str, Counter[str]] = defaultdict(Counter)
        said: Counter[str] = Counter()
        for document in documents.order_by("pk"):
            known = of_media_type(document.media_type)
            row = rows[known.label if known else "not read"]
            row["files"] += 1
            if document.status != Document.Status.READY:
                said[document.error.replace(document.source.rsplit("/", 1)[-1], "…")] += 1
                continue
            row["read"] += 1
            row["characters"] += len(document.text.text)
            row["headings"] += len(document.text.sections)
            row["tables"] += len(document.tables.all())
            row["rows"] += sum(table.row_count for table in document.tables.all())
            row["pages"] += len(document.text.pages)
            row["recognised pages"] += len(document.text.recognised)
            row["pictures"] += sum(count for kind, _, count in document.left_out if kind == "recognised")
            row["files in it"] += len(document.members.all())
            row["told"] += any(kind != "recognised" for kind, _, _ in document.left_out)
        if not rows:
            raise CommandError("There are no documents in this collection.")
        self.stdout.write(f"| Format | {' | '.join(name.capitalize() for name in _COLUMNS)} |")
        self.stdout.write(f"|---|{'---|' * len(_COLUMNS)}")
        labels = [*dict.fromkeys(known.label for known in read_formats()), "not read"]
        for label, row in sorted(rows.items(), key=lambda item: labels.index(item[0])):
            self.stdout.write(f"| {label} | {' | '.join(f'{row[name]:,}' if row[name] else '' for name in _COLUMNS)} |")
        for sentence, count in said.most_common():
            self.stdout.write(f"{count} × {sentence}")
