"""Commits that do not wait for the disk, for what a crash of the database server may take back by half a second.

Leases, heartbeats, events on their way, notes on what was enqueued: after such a crash they are made anew, or are worth
nothing. What a person said, and what an answer says in the end, waits for the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import BooleanField, Func

# True. For the condition of an UPDATE that is a transaction of its own, or the first statement of one. Citus takes no
# such condition on the tables that it distributes: there, `not_waiting`.
NOT_WAITING = "set_config('synchronous_commit', 'off', true) = 'off'"


class NotWaiting(Func):
    """As `NOT_WAITING`, in a query set."""

    template = f"({NOT_WAITING})"
    output_field = BooleanField()
    conditional = True


@contextmanager
def not_waiting() -> Iterator[None]:
    """A transaction whose commit does not wait. Within another one, that one's commit does not either."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {NOT_WAITING}")
        yield
