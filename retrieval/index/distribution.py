"""A PostgreSQL that Citus distributes over several nodes: how it becomes one, its nodes, and its distributed tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from django.db import DatabaseError, connection, transaction
from psycopg import sql

from retrieval.models import Chunk, ChunkEmbedding, DocumentText

# Which tables are distributed, and what PostgreSQL's catalogue says of them.
#
# What grows with the passages is distributed by the document: its text, its passages and their vectors lie in shards
# on one node, and what joins them joins within a node. Everything else stays on the coordinator, where it was:
# documents too, and the words' document frequencies, of which every search reads a few rows. So BM25's statistics are
# exact over all shards, and no other table's keys or identities change. No table is a reference table: each write of
# one would need every node.

COLUMN = "document_id"
# In the order in which they are distributed.
DISTRIBUTED: tuple[str, ...] = tuple(model._meta.db_table for model in (DocumentText, Chunk, ChunkEmbedding))
# Foreign keys hold within a shard alone: from, columns, to, columns.
COLOCATED_KEYS = {
    "vector_of_its_passage": (DISTRIBUTED[2], f"chunk_id, {COLUMN}", DISTRIBUTED[1], f"id, {COLUMN}"),
}
# What the shards compute with.
FUNCTIONS = (
    "retrieval_bm25_length(tsvector, float8[])",
    "retrieval_bm25_weights(tsvector, float8[], float8, float8, float8)",
)
# Settings of the database. A join with a table of the coordinator takes the few rows that it needs from the shards,
# instead of sending all documents to every node; settings of a transaction hold on the nodes, too.
SETTINGS = {"citus.local_table_join_policy": "prefer-distributed", "citus.propagate_set_commands": "local"}


@dataclass(frozen=True, slots=True)
class TableConstraint:
    """``columns`` are quoted where they have to be; ``definition`` is PostgreSQL's own."""

    table: str
    name: str
    columns: tuple[str, ...]
    definition: str


def is_distributed() -> bool:
    """Whether this database's passages are spread over the nodes of a Citus cluster."""
    return bool(distributed())


def distributed() -> set[str]:
    """Those of the tables that are distributed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return set()
        cursor.execute("SELECT logicalrelid::text FROM pg_dist_partition WHERE partmethod = 'h'")
        return {table for (table,) in cursor.fetchall()} & set(DISTRIBUTED)


def narrow_constraints(table: str) -> list[TableConstraint]:
    """The table's primary key and unique constraints that lack the column by which it is distributed."""
    return [one for one in _constraints(table, "conrelid", "pu") if COLUMN not in one.columns]


def foreign_keys(table: str) -> list[TableConstraint]:
    """Foreign keys from the table and to it."""
    keys = _constraints(table, "conrelid", "f") + _constraints(table, "confrelid", "f")
    return sorted({key.name: key for key in keys if key.name not in COLOCATED_KEYS}.values(), key=lambda key: key.name)


def indexes(table: str) -> dict[str, str]:
    """The definitions of the indexes that belong to no constraint, by name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
            "WHERE indrelid = %s::regclass "
            "AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u')) "
            "ORDER BY 1",
            [table],
        )
        return dict(cursor.fetchall())


def _constraints(table: str, side: str, kinds: str) -> list[TableConstraint]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, quote_ident(conname), ARRAY("
            "SELECT quote_ident(attname) FROM unnest(conkey) WITH ORDINALITY AS key(number, place) "
            "JOIN pg_attribute ON attrelid = conrelid AND attnum = key.number ORDER BY place"
            f"), pg_get_constraintdef(oid) FROM pg_constraint WHERE {side} = %s::regclass AND contype = ANY(%s) "
            "ORDER BY conname",
            [table, list(kinds)],
        )
        return [TableConstraint(owner, name, tuple(columns), text) for owner, name, columns, text in cursor.fetchall()]


_CLEAN = (
    "SELECT count(gin_clean_pending_list(indexrelid::regclass)) FROM pg_index "
    "JOIN pg_class ON pg_class.oid = indexrelid "
    "JOIN pg_am ON pg_am.oid = relam WHERE amname = 'gin' AND indrelid = '%s'::regclass"
)


def clean_pending_lists() -> None:
    """Bring the GIN indexes of the tables that can be distributed up to date. Raises: DatabaseError."""
    spread = is_distributed()
    with connection.cursor() as cursor:
        for table in DISTRIBUTED:
            if not spread:
                cursor.execute(_CLEAN % table)
                continue
            cursor.execute("SELECT result FROM run_command_on_shards(%s, %s) WHERE NOT success", [table, _CLEAN])
            if failed := cursor.fetchone():
                raise DatabaseError(failed[0])


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


@dataclass(frozen=True, slots=True)
class DistributionStep:
    """``title`` says what it does, for the operator."""

    title: str
    run: Callable[[], None]


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


def _distribute(table: str, count: int) -> None:
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
        if table == DISTRIBUTED[0]:
            cursor.execute("SELECT create_distributed_table(%s, %s, shard_count => %s)", [table, COLUMN, count])
        else:
            cursor.execute(
                "SELECT create_distributed_table(%s, %s, colocate_with => %s)", [table, COLUMN, DISTRIBUTED[0]]
            )
        cursor.execute("SELECT truncate_local_data_after_distributing_table(%s)", [table])
        for definition in definitions.values():
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


def _add_key(name: str) -> None:
    table, columns, other, other_columns = COLOCATED_KEYS[name]
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


def _share(function: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT create_distributed_function(%s)", [function])


def _is_set(name: str, value: str) -> bool:
    return _exists(
        "SELECT FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase "
        "WHERE datname = current_database() AND setrole = 0 AND %s = ANY(setconfig)",
        f"{name}={value}",
    )


def _set(name: str, value: str) -> None:
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
