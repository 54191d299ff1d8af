"""Database access of a search: deadlines, asynchronous commits, lost nodes, prepared statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import psycopg
from django.db import connection, connections, transaction
from django.db.models import BooleanField, Func
from django.utils.translation import gettext as _

from core import deadline

# A true condition, after which the transaction's commit does not wait for the disk. Use it in an UPDATE that is its own
# transaction, or its first statement; Citus refuses it on distributed tables: use `not_waiting` there. A crash may lose
# the last half second of such commits: leases, heartbeats, passing events. Users' texts and answers wait.
NOT_WAITING = "set_config('synchronous_commit', 'off', true) = 'off'"
IS_NOT_WAITING = Func(template=f"({NOT_WAITING})", output_field=BooleanField())


@contextmanager
def not_waiting() -> Iterator[None]:
    """Run a transaction whose commit, like an outer transaction's, does not wait for the disk."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {NOT_WAITING}")
        yield


def iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def is_node_lost(error: BaseException | None) -> bool:
    # Class 08 contains connection exceptions; a loss of this process's own connection has no state.
    return any((getattr(each, "sqlstate", None) or "").startswith("08") for each in iterate_causes(error))


def get_outage_message() -> str:
    return _("Part of the database does not answer, so the documents cannot be read. Please try again in a minute.")


def release_connections() -> None:
    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:
            each.close_if_unusable_or_obsolete()


# A vector as text takes three times as long to read as in PostgreSQL's binary form.


def fetch(sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Return a statement's rows on this thread's connection and in its transaction.

    The statement types its parameters (``%s::bigint[]``). Raises: DatabaseError, as Django's cursors do.
    """
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    with (
        connection.wrap_database_errors,
        psycopg.Cursor[tuple[Any, ...]](connection.connection) as cursor,
    ):
        cursor.execute(sql, parameters, prepare=True, binary=True)
        return cursor.fetchall()


@contextmanager
def statements_within(seconds: float, database_settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Run a transaction whose statements have ``seconds`` each, or the question's remaining time.

    Raises: OperationalError if a statement is too slow.
    """
    milliseconds = max(1, int(deadline.seconds_left(seconds) * 1000))
    with transaction.atomic():
        chosen = {"statement_timeout": f"{milliseconds}ms", **database_settings}
        with connection.cursor() as cursor:
            # `set_config` would not reach the nodes of a distributed database.
            cursor.execute("; ".join(f"SET LOCAL {name} TO %s" for name in chosen), list(chosen.values()))
        yield
