"""A Django database backend that starts the site's own PostgreSQL at the first connection."""

from __future__ import annotations

import select
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base

# The statements of `core.database.fetch_rows` are prepared at their first use, unless this number is None. Django's own
# are never prepared, because they have their parameters in their text.
PREPARE_THRESHOLD = 5


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        """Return the parameters of a connection that can keep prepared statements, which Django turns off."""
        return {**super().get_connection_params(), "prepare_threshold": PREPARE_THRESHOLD}

    def is_usable(self) -> bool:
        return self.connection is not None and is_usable(self.connection)

    def get_new_connection(self, conn_params: dict[str, object]) -> Any:
        """Return a connection, which is checked if it comes from a pool.

        The pool's own check would query the server some twenty times for each answer.
        """
        if settings.EMBEDDED_POSTGRES is not None:
            settings.EMBEDDED_POSTGRES.acquire_server()
        while True:
            connection = super().get_new_connection(conn_params)
            if self.pool is None or is_usable(connection):
                return connection
            connection.close()
            # The pool replaces a closed connection that it gets back.
            self.pool.putconn(connection)


def is_usable(connection: psycopg.Connection[Any]) -> bool:
    """Return whether an idle connection is still open. The server is asked only if its socket is readable."""
    waiting = select.poll()  # `select.select` refuses file numbers above 1,024.
    try:
        # A closed connection has no socket, which is an error too.
        waiting.register(connection, select.POLLIN)
        if waiting.poll(0):
            connection.execute("")
    except psycopg.OperationalError:
        return False
    return True
