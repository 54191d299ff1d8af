"""A Django database backend that starts the embedded server at the first connection."""

from __future__ import annotations

import select
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, object]) -> Any:
        """Return a connection, which the pool, if there is one, may have lent before.

        The pool's own check asks the server each time a connection is lent, some twenty times an answer.
        """
        if settings.EMBEDDED_POSTGRES is not None:
            settings.EMBEDDED_POSTGRES.acquire()
        while True:
            connection = super().get_new_connection(conn_params)
            if self.pool is None or is_usable(connection):
                return connection
            connection.close()
            # The pool replaces a closed connection that it gets back.
            self.pool.putconn(connection)


def is_usable(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the server has not ended an idle connection; the server is asked only if it has sent something.

    A server that ends a connection, or whose process dies, makes its socket readable. So does a changed setting.
    """
    waiting = select.poll()  # `select.select` refuses files above 1,024
    waiting.register(connection, select.POLLIN)
    if not waiting.poll(0):
        return True
    try:
        connection.execute("")
    except psycopg.OperationalError:
        return False
    return True
