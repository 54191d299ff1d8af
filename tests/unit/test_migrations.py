"""Migrations that a release adds: the release before it still works while its processes are replaced one by one.

The new schema must accept the old release's writes, and must have all that it reads. A migration for which this cannot
be seen here says in `old_code_survives` why it does all the same.
"""

import re

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader

# The number of the last migration of the first release.
RULED_AFTER = dict.fromkeys(("chat", "evaluation", "ragsite", "retrieval"), 1)

REMOVING = (
    migrations.RemoveField,
    migrations.RenameField,
    migrations.DeleteModel,
    migrations.RenameModel,
    migrations.AlterModelTable,
)
DEMANDING = (migrations.AddConstraint, migrations.AlterUniqueTogether)
SQL = re.compile(
    r"\b(DROP\s+(TABLE|COLUMN|FUNCTION|VIEW)|RENAME|SET\s+NOT\s+NULL|ADD\s+CONSTRAINT|ALTER\s+COLUMN\s+\S+\s+TYPE)",
    re.I,
)


def doubts(migration):
    """Yield a sentence for each operation that the release before might not survive."""
    if getattr(migration, "old_code_survives", ""):
        return
    made = {each.name.lower() for each in migration.operations if isinstance(each, migrations.CreateModel)}
    for operation in flat(migration.operations):
        of_new_table = getattr(operation, "model_name", "").lower() in made
        name = f"{type(operation).__name__} {getattr(operation, 'name', '')}"
        if isinstance(operation, REMOVING):
            yield f"{name}: it is read. Stop using it in one release, remove it in the next."
        elif isinstance(operation, DEMANDING) and not of_new_table:
            yield f"{name}: rows that the release before writes may break it."
        elif isinstance(operation, migrations.AddField) and not of_new_table and needs_value(operation.field):
            yield f"{name}: an INSERT that does not know it fails. Give it db_default, or null=True."
        elif isinstance(operation, migrations.AlterField) and not keeps_column(migration, operation):
            yield f"{name}: another type, length or NOT NULL may refuse what the release before writes."
        elif isinstance(operation, migrations.RunSQL) and (found := SQL.search(str(operation.sql))):
            yield f"{found[0]} in SQL."


def needs_value(field):
    is_column = not field.many_to_many and not isinstance(field, models.GeneratedField)
    return is_column and not field.null and not field.has_db_default()


def keeps_column(migration, operation):
    """Return whether the field's column stays the same: choices and names are Python's."""
    before = MigrationLoader(None).project_state((migration.app_label, migration.name), at_end=False)
    old = before.models[migration.app_label, operation.model_name_lower].fields[operation.name]
    return in_database(old) == in_database(operation.field)


def in_database(field):
    _, path, arguments, options = field.deconstruct()
    return path, arguments, {name: value for name, value in options.items() if name not in field.non_db_attrs}


def flat(operations):
    for operation in operations:
        yield operation
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            yield from flat(operation.database_operations)


def test_the_release_before_survives_new_migrations():
    known = MigrationLoader(None).disk_migrations
    found = {
        f"{app}.{name}": told
        for (app, name), migration in known.items()
        if app in RULED_AFTER and int(name[:4]) > RULED_AFTER[app] and (told := list(doubts(migration)))
    }
    assert not found, f"CONTRIBUTING.md, “Migrations”, says what to do: {found}"


@pytest.mark.parametrize(
    ("operation", "is_doubtful"),
    [
        (migrations.RemoveField("answer", "text"), True),
        (migrations.AddField("answer", "mood", models.CharField(max_length=9, default="")), True),
        (migrations.AddField("answer", "mood", models.CharField(max_length=9, default="", db_default="")), False),
        (migrations.AddField("answer", "mood", models.CharField(max_length=9, null=True)), False),
        (migrations.RunSQL("ALTER TABLE chat_answer DROP COLUMN text"), True),
        (migrations.RunSQL("CREATE INDEX ON chat_answer (text)"), False),
        (migrations.SeparateDatabaseAndState([migrations.DeleteModel("answer")]), True),
    ],
)
def test_what_is_doubtful(operation, is_doubtful):
    migration = migrations.Migration("9999_new", "chat")
    migration.operations = [operation]
    assert bool(list(doubts(migration))) == is_doubtful
    migration.old_code_survives = "Nothing has read it since 0.2."
    assert not list(doubts(migration))
