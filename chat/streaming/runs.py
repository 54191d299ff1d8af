"""Answers that this process writes: their leases, the events that they have published so far, and their heartbeat.

Events and heartbeats are stored a few times a second for all of them at once: one statement for a hundred answers, not
a hundred statements. What waits for a model costs the database nothing.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from chat.conversations.history import turns_before
from chat.metrics import ABANDONED
from chat.models import Answer, StreamedEvent
from chat.protocols import PartialAnswer
from chat.streaming.asking import filters_of
from retrieval.exceptions import InvalidQuery
from retrieval.infrastructure import jobs
from retrieval.infrastructure.database import NOT_WAITING, NotWaiting, fetch
from retrieval.types import SearchFilters, Turn

if TYPE_CHECKING:
    from chat.streaming.answer_cache import CachedAnswer
    from chat.types import Completed, Failed, Searched

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
_UNFINISHED = (Answer.Status.PENDING, Answer.Status.GENERATING)

_TASKS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Task[None]] = WeakKeyDictionary()
# Their own, so that no heartbeat waits behind the searches of a hundred questions.
_THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="answers")

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event of a stream. ``id`` is "attempt-sequence", both from 1; empty for a ping, which is not stored.

    ``saved`` is the answer as it was saved before the last event, for readers in the process that wrote it.
    """

    id: str
    name: str
    payload: dict[str, Any]
    saved: Answer | None = field(default=None, compare=False)

    @property
    def is_last(self) -> bool:
        return self.name in ("completed", "failed")


@dataclass(slots=True, eq=False)
class Run:
    """The generation of a leased ``answer`` in this process: what it is written from, what it has published so far, and
    what is to be saved of it.

    The first ``stored`` events are in the database. ``readers`` are those whose line is open, ``followers`` those of
    them who wait for the next event; ``last_read`` is when the last line was closed, ``last_followed`` when an event
    was last taken. ``caller`` is who has a share of the places. ``may_return`` says that a reader of a kind that comes
    back has been here, ``is_begun`` that it no longer waits for its turn, ``is_stopped`` that it was cancelled because
    somebody stopped it, nobody reads it, or another process writes it. ``ending`` says that its outcome is known and is
    being saved: from then on it cannot be stopped.

    ``outcome`` is None until it is known. ``is_partial`` says that a reader, the lack of one, or the deadline ended it.
    ``cache_key`` is empty for an answer that must not serve again. ``saved`` is the answer, once it is.
    """

    answer: Answer
    filters: SearchFilters
    history: tuple[Turn, ...] = ()
    loop: asyncio.AbstractEventLoop = field(init=False)
    caller: str = ""
    may_return: bool = True
    events: list[StreamEvent] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    readers: int = 0
    last_read: float = field(default_factory=time.monotonic)
    followers: int = 0
    last_followed: float = field(default_factory=time.monotonic)
    stored: int = 0
    is_begun: bool = False
    is_stopped: bool = False
    ending: bool = False

    outcome: Completed | Failed | CachedAnswer | None = None
    searched: Searched | None = None
    draft: PartialAnswer = field(default_factory=PartialAnswer)
    timings_ms: dict[str, float] = field(default_factory=dict)
    cache_key: str = ""
    is_partial: bool = False
    saved: Answer | None = None

    def cancel(self) -> None:
        """Stop the writing, unless its outcome is being saved already."""
        if self.task is not None and not self.ending:
            self.is_stopped = True
            self.task.cancel()

    def publish(self, name: str, payload: dict[str, Any], saved: Answer | None = None) -> None:
        self.events.append(StreamEvent(f"{self.answer.attempts}-{len(self.events) + 1}", name, payload, saved))
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def rows(self, upto: int) -> list[StreamedEvent]:
        """The events that are not stored yet, to the ``upto``-th, as rows."""
        return [
            StreamedEvent(
                answer=self.answer,
                attempt=self.answer.attempts,
                sequence=number,
                name=self.events[number - 1].name,
                payload=self.events[number - 1].payload,
            )
            for number in range(self.stored + 1, upto + 1)
        ]


RUNS: dict[uuid.UUID, Run] = {}


def in_database(function: Callable[P, R]) -> Callable[P, Any]:
    """``function`` run in a thread that gives its database connection back, so that a waiting stream holds none."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            connection.close_if_unusable_or_obsolete()

    return sync_to_async(call, thread_sensitive=False, executor=_THREADS)


def acquire(answer_id: uuid.UUID, asked: Answer | None = None) -> Run | None:
    """The answer, leased, if it waits or its writer is dead; it is PENDING until it is its turn.

    ``asked`` is the answer for who has just asked for it: it is not read again.
    """
    rows = Answer.objects.filter(NotWaiting(), status__in=_UNFINISHED).order_by()
    restart = {"status": Answer.Status.PENDING, "text": "", "error": ""}
    answer = _take(asked, rows, restart) if asked is not None else None
    if answer is None:
        joined = rows.select_related("conversation__owner", "collection", "document__collection")
        answer = jobs.acquire_lease(joined, answer_id, **restart)
    if answer is None:
        return None
    try:
        filters = filters_of(answer)
    except InvalidQuery:
        filters = SearchFilters()
    return Run(answer, filters, turns_before(answer))


def _take(asked: Answer, rows: QuerySet[Answer], restart: Mapping[str, str]) -> Answer | None:
    """A copy of the answer, leased; None unless nobody has leased it before. Its asker is read anew: what the request
    knows of them holds for the request.
    """
    token = jobs.take_lease(rows.filter(attempts=0), asked.pk, **restart)
    if token is None:
        return None
    answer = copy.copy(asked)
    answer.lease, answer.attempts = token, 1
    answer.conversation = copy.copy(asked.conversation)
    if asked.conversation.owner_id is not None:
        answer.conversation.owner = get_user_model()._default_manager.get(pk=asked.conversation.owner_id)
    return answer


def hand_over(answer: Answer) -> None:
    """Let the next reader, who comes to another process, begin the answer anew at once."""
    unfinished = answer.held().filter(status__in=_UNFINISHED)
    unfinished.update(status=Answer.Status.PENDING, lease=None, heartbeat_at=None)


def store(events: Sequence[StreamedEvent]) -> None:
    """Write events that may have been written before: the last regular round can still be under way at the end."""
    StreamedEvent.objects.bulk_create(events, ignore_conflicts=True)


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
        snapshots = {run: len(run.events) for run in runs if not run.ending}
        try:
            followed = await in_database(_store)(snapshots)
        except Exception:
            # The database is away: the generations go on, and the next round tries again.
            logger.exception("Events of %d answers could not be stored.", len(snapshots))
            continue
        for run in snapshots:
            if run not in followed:
                run.cancel()
            elif not run.ending and _is_abandoned(run, followed[run]):
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


def _store(snapshots: Mapping[Run, int]) -> dict[Run, bool]:
    """Write the events up to so many of each run, which goes on meanwhile; returns whether a reader in another process
    follows, for each whose lease holds."""
    if not snapshots:
        return {}
    try:
        return _store_at_once(snapshots)
    except DatabaseError:
        if len(snapshots) == 1:
            raise
        logger.exception("Events of %d answers could not be stored together; each is tried alone.", len(snapshots))
    # What is wrong with one must not stop the others.
    followed: dict[Run, bool] = {}
    for run, upto in snapshots.items():
        try:
            followed |= _store_at_once({run: upto})
        except DatabaseError:
            logger.exception("Events of answer %s could not be stored.", run.answer.pk)
            followed[run] = False
    return followed


def _store_at_once(snapshots: Mapping[Run, int]) -> dict[Run, bool]:
    by_lease = {run.answer.lease: run for run in snapshots}
    with transaction.atomic():
        renewed = fetch(_RENEW, [list(by_lease), list(_UNFINISHED), timedelta(seconds=UNFOLLOWED_SECONDS)])
        followed = {by_lease[token]: is_followed for token, is_followed in renewed}
        store([event for run in followed for event in run.rows(snapshots[run])])
    for run in followed:
        run.stored = snapshots[run]
    return followed
