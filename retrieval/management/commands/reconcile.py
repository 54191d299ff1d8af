from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from core.exceptions import RagsiteError
from retrieval.documents.reconciliation import Inconsistency, reconcile_index
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.models import Document


class Command(MigratedDatabaseCommand):
    help = (
        "Check that passages, vectors, statistics, documents and files agree. The exit status is 1 when something "
        "disagrees and was not repaired. Safe while the site runs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repair", action="store_true", help="Repair what can be repaired, and check again.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = reconcile_index(repair=options["repair"])
        except RagsiteError as error:
            raise CommandError(str(error)) from error
        left = sum(not inconsistency.repaired for inconsistency in found)
        failed = Document.objects.filter(status=Document.Status.FAILED).count()
        if options["json"]:
            self.stdout.write(
                json.dumps(
                    {
                        "inconsistencies": [asdict(inconsistency) for inconsistency in found],
                        "unrepaired": left,
                        "failed_documents": failed,
                    },
                    ensure_ascii=False,
                )
            )
        else:
            self._print(found)
            if failed:
                self.stdout.write(f"{failed} documents could not be read: see the documents with status failed.")
        if left:
            advice = "they need a person: see docs/operations.md" if options["repair"] else "run it with --repair"
            raise CommandError(f"{left} kinds of inconsistency are left; {advice}.")

    def _print(self, found: Sequence[Inconsistency]) -> None:
        if not found:
            self.stdout.write("Everything agrees.")
            return
        rows = [("count", "collection", "what", "for example", "")] + [
            (
                str(one.count),
                one.collection or "-",
                str(one.kind.label),
                ", ".join(one.examples),
                "repaired" if one.repaired else "",
            )
            for one in found
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for count, *cells in rows:
            padded = (cell.ljust(width) for cell, width in zip(cells, widths[1:], strict=True))
            self.stdout.write("  ".join([count.rjust(widths[0]), *padded]).rstrip())
