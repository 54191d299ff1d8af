"""Starts the embedded server at the first connection, so that any command of the site just works; looks at a pooled
connection before it is used, without asking the server each time; and notes the errors of a replica with the work that
reads from it, wherever that work catches them."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.errors import QueryCanceled

from retrieval.infrastructure import database

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
        if settings.EMBEDDED_POSTGRES is not None and not self._is_replica:
            settings.EMBEDDED_POSTGRES.acquire()
        return super().get_new_connection(conn_params)

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return _NotingErrorWrapper(self) if self._is_replica else DatabaseErrorWrapper(self)

    @property
    def _is_replica(self) -> bool:
        return self.alias in database.replica_aliases()


class _NotingErrorWrapper(DatabaseErrorWrapper):
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        reading = database.current()
        # A statement that ran past its time would run past it on the primary, too, where none is left.
        is_failure = exc_type is not None and not issubclass(exc_type, QueryCanceled)
        if is_failure and reading.alias == self.wrapper.alias and not reading.failure:  # type: ignore[attr-defined]
            reading.failure = f"{exc_type.__name__}: {exc_value}"
        super().__exit__(exc_type, exc_value, traceback)


def check(connection: Connection[Any]) -> None:
    """Raises: psycopg.OperationalError when the connection does not work any more."""
    from psycopg_pool import ConnectionPool

    now = time.monotonic()
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0) or now - _answered_at.get(connection, -TRUSTED_SECONDS) >= TRUSTED_SECONDS:
        ConnectionPool.check_connection(connection)
        _answered_at[connection] = now
