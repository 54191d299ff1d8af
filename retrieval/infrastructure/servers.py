"""Which PostgreSQL server the work at hand reads from: the primary, or a replica.

:mod:`retrieval.infrastructure.replicas` chooses. Statements in SQL use :data:`connection` from here, models ask
:class:`Router`. What is written always goes to the primary.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils.connection import ConnectionProxy

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


@dataclass(eq=False, slots=True)
class Reading:
    """One piece of work that reads from the server ``alias``.

    ``told`` names the server, and why it is no other one, for the explanation of a search; empty on a site without
    replicas. ``failure`` is the first error of a replica, which its backend notes.
    """

    alias: str = DEFAULT_DB_ALIAS
    told: str = ""
    failure: str = ""


def replica_aliases() -> list[str]:
    """Of the replicas that the settings name, in their order."""
    return [alias for alias in settings.DATABASES if alias != DEFAULT_DB_ALIAS]


_PRIMARY = Reading()
# Threads that work for a search get it by `retrieval.infrastructure.deadline.submit`.
_current: ContextVar[Reading] = ContextVar("server", default=_PRIMARY)


def current() -> Reading:
    return _current.get()


def is_chosen() -> bool:
    """Whether a server was chosen for the work at hand."""
    return _current.get() is not _PRIMARY


@contextmanager
def reading_from(alias: str, told: str = "") -> Iterator[Reading]:
    reading = Reading(alias, told)
    token = _current.set(reading)
    try:
        yield reading
    finally:
        _current.reset(token)


class _CurrentConnection(ConnectionProxy):  # type: ignore[type-arg]
    @property
    def _alias(self) -> str:
        return _current.get().alias


# As `django.db.connection`, to the server that the work at hand reads from.
connection = cast("BaseDatabaseWrapper", _CurrentConnection(connections, DEFAULT_DB_ALIAS))


class Router:
    """Models are read from the server of the work at hand, and written to the primary."""

    def db_for_read(self, *_: Any, **__: Any) -> str:
        return _current.get().alias

    def db_for_write(self, *_: Any, **__: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, *_: Any, **__: Any) -> bool:
        return True

    def allow_migrate(self, db: str, *_: Any, **__: Any) -> bool:
        return db == DEFAULT_DB_ALIAS


def give_connections_back() -> None:
    """To their pools, if they have one; a transaction keeps its own."""
    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:
            each.close_if_unusable_or_obsolete()
