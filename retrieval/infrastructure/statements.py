"""Statements that every search runs: in PostgreSQL's binary form, prepared once a connection.

Django's own cursors put the parameters into the text, so that PostgreSQL parses vectors and lists anew each time, and
answer in text, where a vector takes three times as long to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings

from retrieval.infrastructure.servers import connection


def fetch(sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement on this thread's connection, within its transaction if it has one.

    Parameters are typed in the statement (``%s::bigint[]``). Raises: DatabaseError, as Django's cursors do.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with (
        connection.wrap_database_errors,
        psycopg.Cursor[tuple[Any, ...]](connection.connection) as cursor,
    ):
        # The statements are the site's own: only their parameters come from outside.
        cursor.execute(sql, parameters, prepare=settings.DATABASE_PREPARES_STATEMENTS, binary=True)
        return cursor.fetchall()
