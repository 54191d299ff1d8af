"""Access the database: timeouts, commits that do not wait for the disk, lost nodes, prepared statements."""

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

# This SQL condition is always true. If a transaction begins with an UPDATE that contains it, the commit does not wait
# for the disk. A crash may lose the last half second, so never use it for users' texts and answers. Citus refuses it on
# distributed tables: use `commit_without_waiting` instead.
NOT_WAITING = "set_config('synchronous_commit', 'off', true) = 'off'"
IS_NOT_WAITING = Func(template=f"({NOT_WAITING})", output_field=BooleanField())


@contextmanager
def commit_without_waiting() -> Iterator[None]:
    """Run a transaction whose commit does not wait for the disk, so that a crash may lose it.

    Within another transaction, this applies to the outer one.
    """
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
    # SQLSTATE class 08: the database lost its connection to one of its nodes.
    return any((getattr(each, "sqlstate", None) or "").startswith("08") for each in iterate_causes(error))


def get_outage_message() -> str:
    return _("Part of the database does not answer, so the documents cannot be read. Please try again in a minute.")


def release_connections() -> None:
    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:
            each.close_if_unusable_or_obsolete()


# Reading a vector in text form would take three times as long.


def fetch_rows(sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of an SQL statement, which runs on this thread's connection and in its transaction.

    The statement must give the types of its parameters (``%s::bigint[]``). Raises: DatabaseError.
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
def limit_statements(seconds: float, database_settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Run a transaction in which each statement may take ``seconds``, or less near the question's deadline.

    ``database_settings`` are set for the transaction. Raises: OperationalError if a statement takes longer.
    """
    milliseconds = max(1, int(deadline.seconds_left(seconds) * 1000))
    with transaction.atomic():
        chosen = {"statement_timeout": f"{milliseconds}ms", **database_settings}
        with connection.cursor() as cursor:
            # `set_config` would not change the setting on the nodes of a distributed database.
            cursor.execute("; ".join(f"SET LOCAL {name} TO %s" for name in chosen), list(chosen.values()))
        yield
