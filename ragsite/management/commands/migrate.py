"""Run Django's `migrate`, but refuse a database that this version cannot migrate, such as one of a newer version."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as MigrateCommand
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from ragsite.operations.backups import find_migration_problem


class Command(MigrateCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        if trouble := find_migration_problem(MigrationRecorder(connections[options["database"]]).applied_migrations()):
            raise CommandError(trouble)
        super().handle(*args, **options)
