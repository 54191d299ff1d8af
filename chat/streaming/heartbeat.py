"""Events and heartbeats of the answers that a process writes, stored a few times a second for all of them at once.

One statement for a hundred answers, not a hundred statements: what waits for a model costs the database nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import DatabaseError, transaction

from chat.metrics import ABANDONED
from chat.models import Answer
from chat.streaming import saving
from chat.streaming.runs import RUNS, Run, in_database
from retrieval.database.statements import fetch
from retrieval.resilience.commits import NOT_WAITING

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.25
# How long an answer goes on being written for a reader who may come back.
UNFOLLOWED_SECONDS = 5.0
# The same for a caller who cannot come back: the next round ends the work.
GONE_SECONDS = 0.2

_RENEW = (
    "UPDATE chat_answer SET heartbeat_at = statement_timestamp() "
    f"WHERE lease = ANY(%s::uuid[]) AND status = ANY(%s::text[]) AND {NOT_WAITING} "
    "RETURNING lease, coalesce(followed_at > statement_timestamp() - %s, false)"
)

_TASKS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[None]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, eq=False)
class _Snapshot:
    """A run and how many of its events there were: it goes on while they are stored."""

    run: Run
    upto: int


def watch(loop: asyncio.AbstractEventLoop) -> None:
    """Have the loop's runs stored and watched for as long as there are any."""
    task = _TASKS.get(loop)
    if task is None or task.done():
        # In no context: it works for all answers, not for the request that happened to begin the first one.
        _TASKS[loop] = loop.create_task(_watch(loop), name="heartbeat of answers", context=Context())


async def _watch(loop: asyncio.AbstractEventLoop) -> None:
    """Store events and heartbeats; cancel each generation that was stopped, lost its lease, or has no reader left."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        runs = [run for run in list(RUNS.values()) if run.loop is loop]
        if not runs:
            return
        snapshots = [_Snapshot(run, len(run.events)) for run in runs if not run.ending]
        try:
            followed = await in_database(_store)(snapshots)
        except Exception:
            # The database is away: the generations go on, and the next round tries again.
            logger.exception("Events of %d answers could not be stored.", len(snapshots))
            continue
        for snapshot in snapshots:
            run = snapshot.run
            if run.answer.pk not in followed:
                run.cancel()
            elif not run.ending and _is_abandoned(run, followed[run.answer.pk]):
                ABANDONED.inc()
                run.cancel()


def _is_abandoned(run: Run, is_followed: bool) -> bool:
    """Whether nobody reads along any more, neither here nor, as the database says, in another process."""
    now = time.monotonic()
    if run.readers or run.may_return:
        left = not run.followers and now - run.last_followed > UNFOLLOWED_SECONDS
    else:
        left = now - run.last_read > GONE_SECONDS
    return left and not is_followed


def _store(snapshots: Sequence[_Snapshot]) -> dict[UUID, bool]:
    """Write what is new; returns whether a reader in another process follows, for each answer whose lease holds."""
    if not snapshots:
        return {}
    try:
        return _store_at_once(snapshots)
    except DatabaseError:
        if len(snapshots) == 1:
            raise
        logger.exception("Events of %d answers could not be stored together; each is tried alone.", len(snapshots))
    # What is wrong with one must not stop the others.
    followed: dict[UUID, bool] = {}
    for snapshot in snapshots:
        try:
            followed |= _store_at_once([snapshot])
        except DatabaseError:
            logger.exception("Events of answer %s could not be stored.", snapshot.run.answer.pk)
            followed[snapshot.run.answer.pk] = False
    return followed


def _store_at_once(snapshots: Sequence[_Snapshot]) -> dict[UUID, bool]:
    by_lease = {snapshot.run.answer.lease: snapshot for snapshot in snapshots}
    with transaction.atomic():
        unfinished = [Answer.Status.PENDING, Answer.Status.GENERATING]
        renewed = fetch(_RENEW, [list(by_lease), unfinished, timedelta(seconds=UNFOLLOWED_SECONDS)])
        followed = {by_lease[lease]: is_followed for lease, is_followed in renewed}
        saving.store([event for snapshot in followed for event in snapshot.run.rows(snapshot.upto)])
    for snapshot in followed:
        snapshot.run.stored = snapshot.upto
    return {snapshot.run.answer.pk: is_followed for snapshot, is_followed in followed.items()}
