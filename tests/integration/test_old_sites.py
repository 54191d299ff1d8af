"""Migrations: as many as the models need, and none for a site that was there before an app's became one."""

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

pytestmark = pytest.mark.django_db


def test_every_change_of_a_model_has_its_migration():
    call_command("makemigrations", check_changes=True, dry_run=True)


def test_a_site_that_went_through_the_old_migrations_has_nothing_to_apply():
    recorder = MigrationRecorder(connection)
    squashed = {
        key: migration
        for key, migration in MigrationExecutor(connection).loader.disk_migrations.items()
        if migration.replaces and key[0] in ("chat", "evaluation", "ragsite", "retrieval")
    }
    for key, migration in squashed.items():
        recorder.record_unapplied(*key)
        for old in migration.replaces:
            recorder.record_applied(*old)
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    executor.migrate(executor.loader.graph.leaf_nodes())
    assert len(squashed) == 4
    assert squashed.keys() <= recorder.applied_migrations().keys()
