from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from ragsite.operations.audit_log import record_action
from ragsite.operations.backups import restore_backup


class Command(BaseCommand):
    help = "Make the site what it was when the backup was made. The site must be stopped."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="A file that `backup` made.")
        parser.add_argument("--force", action="store_true", help="Replace the data that the site has.")

    def handle(self, *args: Any, **options: Any) -> None:
        manifest = restore_backup(options["file"].absolute(), replace=options["force"])
        record_action("backup.restored", made_at=manifest.made_at)
        self.stdout.write(
            f"Restored: {manifest.documents} documents, {manifest.files} originals, as of {manifest.made_at}."
        )
