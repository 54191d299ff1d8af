"""Distribute texts, passages and vectors over several PostgreSQL servers (nodes) with Citus, by document.

All other tables stay on the first node (the coordinator).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import DatabaseError, connection, transaction
from psycopg import sql

from retrieval.models import Chunk, ChunkEmbedding, DocumentText

COLUMN = "document_id"
DISTRIBUTED: tuple[str, ...] = tuple(model._meta.db_table for model in (DocumentText, Chunk, ChunkEmbedding))
# The only foreign key that a distributed table can keep: both rows are on the same node.
COLOCATED_KEY = "vector_of_its_passage"
FUNCTIONS = (
    "retrieval_bm25_length(tsvector, float8[])",
    "retrieval_bm25_weights(tsvector, float8[], float8, float8, float8)",
)
# Otherwise a join would send all documents to every node, and SET LOCAL would not apply on the nodes.
SETTINGS = {"citus.local_table_join_policy": "prefer-distributed", "citus.propagate_set_commands": "local"}
OLDEST_CITUS = 12
SHARDS_A_NODE = 4
FEWEST_SHARDS = 8


@dataclass(frozen=True, slots=True)
class DatabaseNode:
    name: str
    holds_shards: bool
    is_reachable: bool


def _run_statement(statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def has_citus() -> bool:
    return _run_statement("SELECT to_regclass('pg_catalog.pg_dist_node') IS NOT NULL") == [(True,)]


def list_distributed_tables() -> set[str]:
    if not has_citus():
        return set()
    rows = _run_statement("SELECT logicalrelid::text FROM pg_dist_partition WHERE partmethod = 'h'")
    return {table for (table,) in rows} & set(DISTRIBUTED)


def list_nodes() -> list[DatabaseNode]:
    if not has_citus():
        return []
    rows = _run_statement(
        "SELECT nodename || ':' || nodeport, shouldhaveshards, coalesce(success, false) FROM pg_dist_node "
        "LEFT JOIN run_command_on_all_nodes('SELECT 1', give_warning_for_connection_errors => true) USING (nodeid) "
        "WHERE isactive AND noderole = 'primary' ORDER BY nodeid"
    )
    return [DatabaseNode(*row) for row in rows]


def count_shards() -> int:
    """Return the number of shards (parts of a distributed table); 0 if the tables are not distributed."""
    ((count,),) = _run_statement("SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = %s::regclass", DISTRIBUTED[0])
    return int(count)


@cache
def count_vector_indexes() -> int:
    """Return the number of vector indexes: one for each shard of a distributed table, or 1."""
    return count_shards() if list_distributed_tables() else 1


_CLEAN = (
    "SELECT count(gin_clean_pending_list(indexrelid::regclass)) FROM pg_index "
    "JOIN pg_class ON pg_class.oid = indexrelid "
    "JOIN pg_am ON pg_am.oid = relam WHERE amname = 'gin' AND indrelid = '%s'::regclass"
)


def flush_gin_pending_lists() -> None:
    """Bring the GIN indexes of passages, texts and vectors up to date. Raises: DatabaseError."""
    spread = list_distributed_tables()
    for table in DISTRIBUTED:
        if not spread:
            _run_statement(_CLEAN % table)
        elif failed := _run_statement(
            "SELECT result FROM run_command_on_shards(%s, %s) WHERE NOT success", table, _CLEAN
        ):
            raise DatabaseError(failed[0][0])


def find_citus_problem() -> str:
    """Return a sentence that says why this PostgreSQL cannot distribute tables; empty if it can."""
    found = _run_statement("SELECT installed_version FROM pg_available_extensions WHERE name = 'citus'")
    if not found:
        return "This PostgreSQL has no Citus: install it on every node, or stay with one server."
    ((version,),) = found
    if version is None:
        return "Citus is not set up in this database: run CREATE EXTENSION citus in it, and add the nodes."
    if int(version.split(".")[0]) < OLDEST_CITUS:
        return f"This is Citus {version}: version {OLDEST_CITUS} or later is needed."
    cluster = list_nodes()
    if not any(node.holds_shards for node in cluster):
        return "The cluster has no node that holds shards: add one with citus_add_node."
    lost = [node.name for node in cluster if not node.is_reachable]
    return f"These nodes do not answer: {', '.join(lost)}." if lost else ""


def distribute_tables(report: Callable[[str], None], shards: int | None = None) -> None:
    """Distribute the tables over ``shards`` shards, or finish an interrupted run. Raises: DatabaseError."""
    count = (
        count_shards() or shards or max(FEWEST_SHARDS, SHARDS_A_NODE * sum(node.holds_shards for node in list_nodes()))
    )
    for function in FUNCTIONS:
        if not _run_statement("SELECT 1 FROM pg_dist_object WHERE objid = to_regprocedure(%s)", function):
            _run_statement("SELECT create_distributed_function(%s)", function)
    for table in DISTRIBUTED:
        if table not in list_distributed_tables():
            report(f"distribute {table} by {COLUMN} over {count} shards")
            _distribute_table(table, count)
    if not _run_statement("SELECT 1 FROM pg_constraint WHERE conname = %s", COLOCATED_KEY):
        _run_statement(
            f"ALTER TABLE {DISTRIBUTED[2]} ADD CONSTRAINT {COLOCATED_KEY} FOREIGN KEY (chunk_id, {COLUMN}) "
            f"REFERENCES {DISTRIBUTED[1]} (id, {COLUMN}) DEFERRABLE INITIALLY DEFERRED"
        )
    with connection.cursor() as cursor:
        for name, value in SETTINGS.items():
            database = sql.Identifier(connection.settings_dict["NAME"])
            cursor.execute(
                sql.SQL("ALTER DATABASE {} SET {} TO {}").format(database, sql.SQL(name), sql.Literal(value))
            )


def _distribute_table(table: str, count: int) -> None:
    with transaction.atomic():
        _run_statement(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        for owner, name, _columns, _definition in _list_constraints(table, "f"):
            if name != COLOCATED_KEY:
                _run_statement(f"ALTER TABLE {owner} DROP CONSTRAINT {name}")
        for _owner, name, columns, definition in _list_constraints(table, "pu"):
            if COLUMN not in columns:
                listed = ", ".join(columns)
                widened = definition.replace(f"({listed})", f"({listed}, {COLUMN})", 1)
                _run_statement(f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} {widened}")
        # Copying rows into indexes takes ten times as long as creating the indexes afterwards.
        indexes = _run_statement(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
            "WHERE indrelid = %s::regclass "
            "AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))",
            table,
        )
        for name, _definition in indexes:
            _run_statement(f"DROP INDEX {name}")
        if table == DISTRIBUTED[0]:
            _run_statement("SELECT create_distributed_table(%s, %s, shard_count => %s)", table, COLUMN, count)
        else:
            _run_statement(
                "SELECT create_distributed_table(%s, %s, colocate_with => %s)", table, COLUMN, DISTRIBUTED[0]
            )
        _run_statement("SELECT truncate_local_data_after_distributing_table(%s)", table)
        for _name, definition in indexes:
            _run_statement(definition)
        for (sequence,) in _run_statement(
            "SELECT pg_get_serial_sequence(%s, attname) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attidentity <> ''",
            table,
            table,
        ):
            ((highest,),) = _run_statement(f"SELECT coalesce(max(id), 0) FROM {table}")
            _run_statement(f"SELECT setval(%s, %s) FROM {sequence} WHERE last_value < %s", sequence, highest, highest)
    _run_statement(f"ANALYZE {table}")


def _list_constraints(table: str, kinds: str) -> list[tuple[Any, ...]]:
    return _run_statement(
        "SELECT conrelid::regclass::text, quote_ident(conname), ARRAY("
        "SELECT quote_ident(attname) FROM unnest(conkey) WITH ORDINALITY AS key(number, place) "
        "JOIN pg_attribute ON attrelid = conrelid AND attnum = key.number ORDER BY place"
        "), pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE %s::regclass IN (conrelid, confrelid) AND contype = ANY(%s) ORDER BY conname",
        table,
        list(kinds),
    )
