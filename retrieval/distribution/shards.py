"""What PostgreSQL does for a table by its name, and has to be told for each shard of a distributed one."""

from __future__ import annotations

from django.db import DatabaseError, connection

from retrieval.distribution.tables import DISTRIBUTED, is_distributed

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
