"""Answers that this process writes: their leases, and the events that they have published so far."""

from __future__ import annotations

import asyncio
import copy
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import QuerySet

from chat.asking import filters_of
from chat.conversations.history import turns_before
from chat.models import Answer, StreamedEvent
from retrieval.exceptions import InvalidQuery
from retrieval.jobs import lease
from retrieval.resilience.commits import NotWaiting
from retrieval.types import SearchFilters, Turn

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


@dataclass(frozen=True, slots=True)
class Lease:
    """A leased answer, and what it is written from."""

    answer: Answer
    filters: SearchFilters
    history: tuple[Turn, ...] = ()


@dataclass(slots=True)
class Run:
    """The generation of a leased answer in this process, and what it has published so far.

    The first ``stored`` events are in the database. ``readers`` are those whose line is open, ``followers`` those of
    them who wait for the next event; ``last_read`` is when the last line was closed, ``last_followed`` when an event
    was last taken. ``caller`` is who has a share of the places. ``may_return`` says that a reader of a kind that comes
    back has been here, ``is_begun`` that it no longer waits for its turn, ``is_stopped`` that it was cancelled because
    somebody stopped it, nobody reads it, or another process writes it. ``ending`` says that its outcome is known and is
    being saved: from then on it cannot be stopped.
    """

    lease: Lease
    loop: asyncio.AbstractEventLoop
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

    @property
    def answer(self) -> Answer:
        return self.lease.answer

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


def acquire(answer_id: uuid.UUID, asked: Answer | None = None) -> Lease | None:
    """The lease of the answer, if it waits or its writer is dead. The answer is PENDING until it is its turn.

    ``asked`` is the answer for who has just asked for it: it is not read again.
    """
    unfinished = Answer.objects.filter(status__in=(Answer.Status.PENDING, Answer.Status.GENERATING))
    rows = unfinished.filter(NotWaiting()).order_by()
    restart = {"status": Answer.Status.PENDING, "text": "", "error": ""}
    answer = _take(asked, rows, restart) if asked is not None else None
    if answer is None:
        joined = rows.select_related("conversation__owner", "conversation__collection")
        answer = lease.acquire(joined, answer_id, **restart)
    if answer is None:
        return None
    try:
        filters = filters_of(answer)
    except InvalidQuery:
        filters = SearchFilters()
    return Lease(answer, filters, turns_before(answer))


def _take(asked: Answer, rows: QuerySet[Answer], restart: Mapping[str, str]) -> Answer | None:
    """A copy of the answer, leased; None unless nobody has leased it before. Its asker is read anew: what the request
    knows of them holds for the request.
    """
    token = lease.take(rows.filter(attempts=0), asked.pk, **restart)
    if token is None:
        return None
    answer = copy.copy(asked)
    answer.lease, answer.attempts = token, 1
    answer.conversation = copy.copy(asked.conversation)
    if asked.conversation.owner_id is not None:
        answer.conversation.owner = get_user_model()._default_manager.get(pk=asked.conversation.owner_id)
    return answer


def hand_over(lease: Lease) -> None:
    """Let the next reader, who comes to another process, begin the answer anew at once."""
    unfinished = lease.answer.held().filter(status__in=(Answer.Status.PENDING, Answer.Status.GENERATING))
    unfinished.update(status=Answer.Status.PENDING, lease=None, heartbeat_at=None)
