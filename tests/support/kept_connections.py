"""Connections that threads of tests close are kept for the next one: to open one takes the server longer than most
tests ask of it, and a test opens a dozen."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db.backends.postgresql import base
from psycopg import Connection, IsolationLevel
from psycopg.pq import TransactionStatus

_MOST = 8
_kept: dict[tuple[tuple[str, str], ...], list[Connection[Any]]] = {}


# A process that shares a connection with its parent would read the answers to the other's questions.
os.register_at_fork(after_in_child=_kept.clear)


@contextmanager
def kept_connections() -> Iterator[None]:
    """Inside, Django's connections without a pool are kept, as they were at their beginning."""
    opened, closed = base.DatabaseWrapper.get_new_connection, base.DatabaseWrapper._close

    def get_new_connection(self: Any, conn_params: dict[str, Any]) -> Connection[Any]:
        if self.pool is None and (kept := _take(_key(conn_params))) is not None:
            self.isolation_level = IsolationLevel.READ_COMMITTED
            return kept
        connection = opened(self, conn_params)
        connection._kept_as = _key(conn_params)
        return connection

    def close(self: Any) -> None:
        if self.pool is not None or not _keep(self.connection):
            closed(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base.DatabaseWrapper, "get_new_connection", get_new_connection)
        patch.setattr(base.DatabaseWrapper, "_close", close)
        yield
    close_kept()


@contextmanager
def new_connections() -> Iterator[None]:
    """Inside, each connection is a new one: whether the server takes any is what is asked."""
    close_kept()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.support.kept_connections._MOST", 0)
        yield


def close_kept() -> None:
    """To be done before a database is copied or dropped."""
    while _kept:
        for connection in _kept.popitem()[1]:
            connection.close()


def _key(conn_params: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in conn_params.items()))


def _take(key: tuple[tuple[str, str], ...]) -> Connection[Any] | None:
    while True:
        try:
            connection = _kept[key].pop()
        except (KeyError, IndexError):
            return None
        if _works(connection):
            return connection


def _works(connection: Connection[Any]) -> bool:
    """Nothing waits to be read: what the server says before it closes one, or the end of the line, would."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if not connection.closed and not waiting.poll(0):
        return True
    connection.close()
    return False


def _keep(connection: Connection[Any] | None) -> bool:
    if connection is None or not hasattr(connection, "_kept_as"):
        return False
    if connection.closed or connection.info.transaction_status is not TransactionStatus.IDLE:
        return False
    idle = _kept.setdefault(connection._kept_as, [])
    if len(idle) >= _MOST:
        return False
    try:
        connection.autocommit = True
        connection.execute("DISCARD ALL")
    except psycopg.Error:
        return False
    idle.append(connection)
    return True
