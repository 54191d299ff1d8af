"""The nodes of a Citus cluster, and the way to it from one PostgreSQL.

Each step is one transaction, and is left out where the catalogue says that it is done: whatever a killed run has done
stands, and the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from threading import Event, Thread

from django.db import connection, transaction
from psycopg import sql

from retrieval.index.distributed_tables import (
    COLOCATED_KEYS,
    COLUMN,
    DISTRIBUTED,
    FUNCTIONS,
    SETTINGS,
    distributed,
    foreign_keys,
    indexes,
    is_distributed,
    narrow_constraints,
)

OLDEST_CITUS = 12


@dataclass(frozen=True, slots=True)
class Node:
    """``is_reachable`` is what the coordinator found just now."""

    name: str
    holds_shards: bool
    is_reachable: bool


def trouble() -> str:
    """Why tables cannot be distributed on this PostgreSQL, in a sentence; empty when they can."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT default_version, installed_version FROM pg_available_extensions WHERE name = 'citus'")
        row = cursor.fetchone()
        if row is None:
            return "This PostgreSQL has no Citus: install it on every node, or stay with one server."
        if row[1] is None:
            return "Citus is not set up in this database: run CREATE EXTENSION citus in it, and add the nodes."
        if int(row[1].split(".")[0]) < OLDEST_CITUS:
            return f"This is Citus {row[1]}: version {OLDEST_CITUS} or later is needed."
    found = nodes()
    if not any(node.holds_shards for node in found):
        return "The cluster has no node that holds shards: add one with citus_add_node."
    lost = [node.name for node in found if not node.is_reachable]
    if lost:
        return f"These nodes do not answer: {', '.join(lost)}."
    return ""


def has_citus() -> bool:
    """Whether Citus is set up in this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL")
        return bool(cursor.fetchone()[0])


def nodes() -> list[Node]:
    """The nodes of the cluster that holds the site's tables, in order, each of which is asked; none of one server."""
    if not has_citus():
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nodename || ':' || nodeport, shouldhaveshards, coalesce(success, false) FROM pg_dist_node "
            "LEFT JOIN run_command_on_all_nodes('SELECT 1', give_warning_for_connection_errors => true) USING (nodeid) "
            "WHERE isactive AND noderole = 'primary' ORDER BY nodeid"
        )
        return [Node(*row) for row in cursor.fetchall()]


@cache
def count_vector_indexes() -> int:
    """How many indexes hold the vectors together: one, or one of each shard.

    Asked once a process: none of the site's runs while its database is distributed.
    """
    return shard_count() if is_distributed() else 1


def shard_count() -> int:
    """In how many shards the tables lie; 0 where they are not distributed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = %s::regclass", [DISTRIBUTED[0]])
        return int(cursor.fetchone()[0])


SHARDS_A_NODE = 4
FEWEST_SHARDS = 8
_WATCH_SECONDS = 1.0

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class DistributionStep:
    """``title`` says what it does, for the operator."""

    title: str
    run: Callable[[Report], None]


def plan(shards: int | None = None) -> list[DistributionStep]:
    """What is left to do, in order; empty when the database is distributed."""
    done, steps = distributed(), []
    count = shard_count() or shards or max(FEWEST_SHARDS, SHARDS_A_NODE * sum(node.holds_shards for node in nodes()))
    for function in _missing_functions():
        steps.append(
            DistributionStep(f"put the function {function.partition('(')[0]} on every node", partial(_share, function))
        )
    for table in DISTRIBUTED:
        if table not in done:
            steps.append(DistributionStep(_describe(table, count), partial(_distribute, table, count)))
    for name in COLOCATED_KEYS:
        if not _exists("SELECT FROM pg_constraint WHERE conname = %s", name):
            title = f"hold {COLOCATED_KEYS[name][0]} to {COLOCATED_KEYS[name][2]} by the foreign key {name}"
            steps.append(DistributionStep(title, partial(_add_key, name)))
    for name, value in SETTINGS.items():
        if not _is_set(name, value):
            steps.append(DistributionStep(f"set {name} of the database to {value}", partial(_set, name, value)))
    return steps


def _describe(table: str, count: int) -> str:
    widened = ", ".join(one.name for one in narrow_constraints(table))
    dropped = ", ".join(key.name for key in foreign_keys(table))
    return (
        f"distribute {table} ({_rows(table)} rows) by {COLUMN} over {count} shards"
        + (f"; {COLUMN} joins {widened}" if widened else "")
        + (f"; foreign keys dropped: {dropped}" if dropped else "")
    )


def _distribute(table: str, count: int, report: Report) -> None:
    """Raises: DatabaseError, and nothing has changed."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        for key in foreign_keys(table):
            cursor.execute(f"ALTER TABLE {key.table} DROP CONSTRAINT {key.name}")
        for one in narrow_constraints(table):
            columns = ", ".join(one.columns)
            widened = one.definition.replace(f"({columns})", f"({columns}, {COLUMN})", 1)
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {one.name}, ADD CONSTRAINT {one.name} {widened}")
        # Kept row by row while all rows are copied, they would take ten times as long as made afterwards.
        definitions = indexes(table)
        for name in definitions:
            cursor.execute(f"DROP INDEX {name}")
        with _watched_copy(table, report):
            if table == DISTRIBUTED[0]:
                cursor.execute("SELECT create_distributed_table(%s, %s, shard_count => %s)", [table, COLUMN, count])
            else:
                cursor.execute(
                    "SELECT create_distributed_table(%s, %s, colocate_with => %s)", [table, COLUMN, DISTRIBUTED[0]]
                )
        cursor.execute("SELECT truncate_local_data_after_distributing_table(%s)", [table])
        for place, (name, definition) in enumerate(definitions.items()):
            report(f"index {name} of {table}", place, len(definitions))
            cursor.execute(definition)
        _raise_identity(table)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {table}")


def _raise_identity(table: str) -> None:
    """The next id is above all that are there."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_serial_sequence(%s, attname) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attidentity <> ''",
            [table, table],
        )
        row = cursor.fetchone()
        if row is not None:
            cursor.execute(f"SELECT max(id) FROM {table}")
            highest = cursor.fetchone()[0] or 0
            cursor.execute(f"SELECT setval(%s, %s) FROM {row[0]} WHERE last_value < %s", [row[0], highest, highest])


@contextmanager
def _watched_copy(table: str, report: Report) -> Iterator[None]:
    total, ended = _rows(table), Event()

    def watch() -> None:
        try:
            while not ended.wait(_WATCH_SECONDS):
                with connection.cursor() as cursor:
                    cursor.execute(
                        "SELECT coalesce(sum(result::bigint), 0)::bigint FROM run_command_on_workers("
                        "'SELECT coalesce(sum(tuples_processed), 0) FROM pg_stat_progress_copy "
                        "WHERE datname = current_database()') WHERE success"
                    )
                    report(f"rows of {table}", min(total, cursor.fetchone()[0]), total)
        finally:
            connection.close()

    watcher = Thread(target=watch, name="distribution", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _add_key(name: str, report: Report) -> None:
    table, columns, other, other_columns = COLOCATED_KEYS[name]
    report(f"foreign key {name}", 0, 1)
    with connection.cursor() as cursor:
        cursor.execute(
            f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({columns}) "
            f"REFERENCES {other} ({other_columns}) DEFERRABLE INITIALLY DEFERRED"
        )


def _missing_functions() -> list[str]:
    return [
        function
        for function in FUNCTIONS
        if not _exists("SELECT FROM pg_dist_object WHERE objid = to_regprocedure(%s)", function)
    ]


def _share(function: str, report: Report) -> None:
    report("functions", 0, 1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT create_distributed_function(%s)", [function])


def _is_set(name: str, value: str) -> bool:
    return _exists(
        "SELECT FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase "
        "WHERE datname = current_database() AND setrole = 0 AND %s = ANY(setconfig)",
        f"{name}={value}",
    )


def _set(name: str, value: str, report: Report) -> None:
    report("settings", 0, 1)
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("ALTER DATABASE {} SET {} TO {}").format(
                sql.Identifier(connection.settings_dict["NAME"]), sql.SQL(name), sql.Literal(value)
            )
        )


def _rows(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


def _exists(query: str, value: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT EXISTS ({query})", [value])
        return bool(cursor.fetchone()[0])
