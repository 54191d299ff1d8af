"""Which tables are distributed, and what PostgreSQL's catalogue says of them.

What grows with the passages is distributed by the document: its text, its passages and their vectors lie in shards on
one node, and what joins them joins within a node. Everything else stays on the coordinator, where it was: documents
too, and the words' document frequencies, of which every search reads a few rows. So BM25's statistics are exact over
all shards, and no other table's keys or identities change. No table is a reference table: each write of one would need
every node.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import DatabaseError, connection

from retrieval.models import Chunk, ChunkEmbedding, DocumentText

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
