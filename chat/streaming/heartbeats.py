from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import timedelta
from weakref import WeakKeyDictionary

from django.db import DatabaseError, transaction

from chat.models import Answer
from chat.streaming import saving
from chat.streaming.runs import RUNS, WritingRun
from core.database import NOT_WAITING, fetch_rows
from core.threads import run_in_database_thread

logger = logging.getLogger(__name__)


FLUSH_SECONDS = 0.25


# Without a reader, an answer is written for this many seconds longer, because the reader may reconnect.
UNFOLLOWED_SECONDS = 5.0


# If a caller leaves and cannot reconnect, the site stops writing the answer after this many seconds.
GONE_SECONDS = 0.2


_RENEW = (
    "UPDATE chat_answer SET heartbeat_at = statement_timestamp() "
    f"WHERE lease = ANY(%s::uuid[]) AND status = ANY(%s::text[]) AND {NOT_WAITING} "
    "RETURNING lease, coalesce(followed_at > statement_timestamp() - %s, false)"
)


WATCHES: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[None]] = WeakKeyDictionary()


async def watch_runs(loop: asyncio.AbstractEventLoop) -> None:
    """Store events and heartbeats while this process writes answers, and cancel answers that should stop."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        runs = [run for run in list(RUNS.values()) if run.loop is loop]
        if not runs:
            return
        snapshots = {run: len(run.events) for run in runs if not run.ending}
        try:
            followed = await run_in_database_thread(_store, snapshots)
        except Exception:
            logger.exception("Events of %d answers could not be stored.", len(snapshots))
            continue
        for run in snapshots:
            if run not in followed or (not run.ending and not followed[run] and _is_abandoned(run)):
                run.cancel()


def _is_abandoned(run: WritingRun) -> bool:
    now = time.monotonic()
    if run.readers or run.may_return:
        return not run.followers and now - run.last_followed > UNFOLLOWED_SECONDS
    return now - run.last_read > GONE_SECONDS


def _store(snapshots: Mapping[WritingRun, int]) -> dict[WritingRun, bool]:
    """Store the first events of each answer, and renew the leases.

    ``snapshots`` maps runs to the number of events to store. Return the runs that this process may still write, each
    with True if a reader in another process follows the answer.
    """
    if not snapshots:
        return {}
    try:
        return _renew_leases_and_store_events(snapshots)
    except DatabaseError:
        if len(snapshots) == 1:
            raise
        logger.exception("Events of %d answers could not be stored together; each is tried alone.", len(snapshots))
    followed: dict[WritingRun, bool] = {}
    for run, upto in snapshots.items():
        try:
            followed |= _renew_leases_and_store_events({run: upto})
        except DatabaseError:
            logger.exception("Events of answer %s could not be stored.", run.answer.pk)
            followed[run] = False
    return followed


def _renew_leases_and_store_events(snapshots: Mapping[WritingRun, int]) -> dict[WritingRun, bool]:
    by_lease = {run.answer.lease: run for run in snapshots}
    with transaction.atomic():
        renewed = fetch_rows(_RENEW, [list(by_lease), list(Answer.UNFINISHED), timedelta(seconds=UNFOLLOWED_SECONDS)])
        followed = {by_lease[token]: is_followed for token, is_followed in renewed}
        saving.store_events([event for run in followed for event in run.events[run.stored : snapshots[run]]])
    for run in followed:
        run.stored = snapshots[run]
    return followed
