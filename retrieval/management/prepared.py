"""Base class of commands that need the site's tables."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

_PREPARING_LOCK = 7_263_515


class MigratedDatabaseCommand(BaseCommand):
    """Base class of commands that first migrate the embedded database."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        self._migrate_embedded_database()
        return super().execute(*args, **options)

    def _migrate_embedded_database(self) -> None:
        if not (number := _count_unapplied_migrations()):
            return
        if settings.EMBEDDED_POSTGRES is None:
            raise CommandError(f"{number} migrations are not applied to the database: run `manage.py migrate` first.")
        # Another program may read standard output.
        self.stderr.write("Preparing the database …", self.style.NOTICE)
        migrate()


def migrate() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_PREPARING_LOCK])
        try:
            call_command("migrate", verbosity=0, interactive=False)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_PREPARING_LOCK])


def _count_unapplied_migrations() -> int:
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
