"""Starts the embedded server at the first connection, so that any command of the site just works; and looks at a pooled
connection before it is used, without asking the server each time."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db.backends.postgresql import base

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool

# So long after an answer of the server, a connection on which nothing waits to be read is taken to work. What the
# server says before it closes one, and the end of the line, waits to be read.
TRUSTED_SECONDS = 5.0

_answered_at: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()


class DatabaseWrapper(base.DatabaseWrapper):
    @property
    def pool(self) -> ConnectionPool[Any] | None:
        pool: ConnectionPool[Any] | None = super().pool
        # An answer takes a connection from the pool a dozen times.
        if pool is not None and pool._check is not None:
            pool._check = check
        return pool

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if settings.EMBEDDED_POSTGRES is not None:
            settings.EMBEDDED_POSTGRES.acquire()
        return super().get_new_connection(conn_params)


def check(connection: Connection[Any]) -> None:
    """Raises: psycopg.OperationalError when the connection does not work any more."""
    from psycopg_pool import ConnectionPool

    now = time.monotonic()
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0) or now - _answered_at.get(connection, -TRUSTED_SECONDS) >= TRUSTED_SECONDS:
        ConnectionPool.check_connection(connection)
        _answered_at[connection] = now
