from __future__ import annotations

from argparse import ArgumentParser
from datetime import date, datetime, time
from typing import Any

from django.utils.timezone import make_aware

from ragsite.models import AuditEntry
from ragsite.operations.audit_log import json_lines, record_action
from retrieval.management.prepared import MigratedDatabaseCommand


class Command(MigratedDatabaseCommand):
    help = "Print the audit log, one entry a line, as JSON, oldest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--since", type=date.fromisoformat, help="First day, such as 2026-11-01.")
        parser.add_argument("--until", type=date.fromisoformat, help="Last day.")

    def handle(self, *args: Any, **options: Any) -> None:
        entries = AuditEntry.objects.all()
        if options["since"]:
            entries = entries.filter(at__gte=make_aware(datetime.combine(options["since"], time.min)))
        if options["until"]:
            entries = entries.filter(at__lte=make_aware(datetime.combine(options["until"], time.max)))
        total = 0
        for line in json_lines(entries):
            self.stdout.write(line, ending="")
            total += 1
        record_action("audit.exported", entries=total)
