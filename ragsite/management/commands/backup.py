from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from ragsite.operations.audit_log import record_action
from ragsite.operations.backups import make_backup
from retrieval.management.prepared import MigratedDatabaseCommand


class Command(MigratedDatabaseCommand):
    help = "Write the database and the originals of all documents to a file. The site may run meanwhile."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The file to make, such as ragsite-2026-11-22.tar.")

    def handle(self, *args: Any, **options: Any) -> None:
        file: Path = options["file"].absolute()
        record_action("backup.made")
        manifest = make_backup(file)
        size_mib = file.stat().st_size / 2**20
        self.stdout.write(f"{file}: {manifest.documents} documents, {manifest.files} originals, {size_mib:.1f} MiB.")
