"""The database as a search uses it: deadlines, commits that do not wait, a lost node."""

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

# Commits that do not wait for the disk, for what a crash of the database server may take back by half a second.
#
# Leases, heartbeats, events on their way, notes on what was enqueued: after such a crash they are made anew, or are
# worth nothing. What a person said, and what an answer says in the end, waits for the disk.

# True. For the condition of an UPDATE that is a transaction of its own, or the first statement of one. Citus takes no
# such condition on the tables that it distributes: there, `not_waiting`.
NOT_WAITING = "set_config('synchronous_commit', 'off', true) = 'off'"


# As `NOT_WAITING`, in a query set.
IS_NOT_WAITING = Func(template=f"({NOT_WAITING})", output_field=BooleanField())


@contextmanager
def not_waiting() -> Iterator[None]:
    """A transaction whose commit does not wait. Within another one, that one's commit does not either."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {NOT_WAITING}")
        yield


# A node of a distributed database that is away.
#
# What lies on it cannot be read, and no statement over all shards is answered: nothing is left out silently. What is
# on the coordinator alone goes on: signing in, conversations, lists of documents.


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and what it was raised from or during."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def is_node_lost(error: BaseException | None) -> bool:
    """Whether the coordinator could not reach a node. Its message names the node, for the log."""
    # The class of connection exceptions; one's own connection, when it is lost, has no state.
    return any((getattr(each, "sqlstate", None) or "").startswith("08") for each in causes(error))


def outage_message() -> str:
    """The sentence for the person who asked."""
    return _("Part of the database does not answer, so the documents cannot be read. Please try again in a minute.")


def give_connections_back() -> None:
    """To their pools, if they have one; a transaction keeps its own."""
    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:
            each.close_if_unusable_or_obsolete()


# Statements that every search runs: in PostgreSQL's binary form, prepared once a connection.
#
# Django's own cursors put the parameters into the text, so that PostgreSQL parses vectors and lists anew each time,
# and answer in text, where a vector takes three times as long to read.


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
        cursor.execute(sql, parameters, prepare=True, binary=True)
        return cursor.fetchall()


# Deadlines for what a question asks of the database.


@contextmanager
def statements_within(seconds: float, database_settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """A transaction whose statements PostgreSQL ends after ``seconds`` each, or after what the question has left, with
    settings of the database that hold within it.

    Raises: OperationalError for that.
    """
    milliseconds = max(1, int(deadline.seconds_left(seconds) * 1000))
    with transaction.atomic():
        chosen = {"statement_timeout": f"{milliseconds}ms", **database_settings}
        with connection.cursor() as cursor:
            # Not by `set_config`, which the nodes of a distributed database would not hear of.
            cursor.execute("; ".join(f"SET LOCAL {name} TO %s" for name in chosen), list(chosen.values()))
        yield
