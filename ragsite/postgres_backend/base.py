"""Starts the embedded server at the first connection, so that any command of the site just works; and notes the errors
of a replica with the work that reads from it, wherever that work catches them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.errors import QueryCanceled

from retrieval import servers


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if settings.EMBEDDED_POSTGRES is not None and not self._is_replica:
            settings.EMBEDDED_POSTGRES.acquire()
        return super().get_new_connection(conn_params)

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return _NotingErrorWrapper(self) if self._is_replica else DatabaseErrorWrapper(self)

    @property
    def _is_replica(self) -> bool:
        return self.alias in servers.replica_aliases()


class _NotingErrorWrapper(DatabaseErrorWrapper):
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        reading = servers.current()
        # A statement that ran past its time would run past it on the primary, too, where none is left.
        is_failure = exc_type is not None and not issubclass(exc_type, QueryCanceled)
        if is_failure and reading.alias == self.wrapper.alias and not reading.failure:  # type: ignore[attr-defined]
            reading.failure = f"{exc_type.__name__}: {exc_value}"
        super().__exit__(exc_type, exc_value, traceback)
