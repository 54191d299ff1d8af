"""Writing one answer: a task of the process that claimed it, and what it has published.

Events reach followers in the same process at once, and the database a few times a second
(see `chat.streaming.heartbeat`).
Whatever happens, the last event tells the truth and is stored before it is shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import OperationalError, connection
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import answering, payloads
from chat.asking import filters_of
from chat.conversations.history import turns_before
from chat.metrics import OUT_OF_TIME
from chat.models import Answer, StreamedEvent
from chat.protocols import PartialAnswer
from chat.streaming import answer_cache, saving, turns
from chat.streaming.admission import ADMISSION
from chat.streaming.answer_cache import Repeated
from chat.streaming.saving import Record, broken_message, deleted_message, interrupted_message
from chat.types import AnswerEvent, AnswerToken, Completed, Failed, Searched
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.resilience import deadline
from retrieval.resilience.timeouts import statements_within
from retrieval.types import SearchFilters, SearchMethod, Turn

__all__ = [
    "RUNS",
    "Claim",
    "Run",
    "StreamEvent",
    "broken_message",
    "claim",
    "in_database",
    "interrupted_message",
    "start",
]

logger = logging.getLogger(__name__)

# Waits between the attempts to save a finished answer.
SAVE_PAUSES_SECONDS = (0.2, 1.0, 3.0)
# For finding an earlier answer that serves again.
LOOK_UP_SECONDS = 2.0
# A generation whose heart has not beaten for this long is taken to be dead.
HEARTBEAT_LOST_AFTER = timedelta(seconds=15)

# Their own, so that no heartbeat waits behind the searches of a hundred questions.
_THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="answers")

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event of a stream. ``id`` is "attempt-sequence", both from 1; empty for a ping, which is not stored."""

    id: str
    name: str
    payload: dict[str, Any]

    @property
    def is_last(self) -> bool:
        return self.name in ("completed", "failed")


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write one answer."""

    answer: Answer
    token: uuid.UUID
    attempt: int
    filters: SearchFilters
    history: tuple[Turn, ...] = ()


@dataclass(slots=True)
class Run:
    """A generation in this process, and what it has published so far; the first ``stored`` of it are in the database.

    ``readers`` are those whose line is open, ``followers`` those of them who wait for the next event; ``last_read`` is
    when the last line was closed, ``last_followed`` when an event was last taken. ``may_return`` says that a reader of
    a kind that comes back has been here, ``is_begun`` that it no longer waits for its turn. ``ending`` says that its
    outcome is known and is being saved: from then on it cannot be stopped.
    """

    claim: Claim
    loop: asyncio.AbstractEventLoop
    events: list[StreamEvent] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    may_return: bool = True
    readers: int = 0
    last_read: float = field(default_factory=time.monotonic)
    followers: int = 0
    last_followed: float = field(default_factory=time.monotonic)
    stored: int = 0
    is_begun: bool = False
    ending: bool = False

    def publish(self, name: str, payload: dict[str, Any]) -> None:
        self.events.append(StreamEvent(f"{self.claim.attempt}-{len(self.events) + 1}", name, payload))
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def rows(self, upto: int) -> list[StreamedEvent]:
        """The events that are not stored yet, to the ``upto``-th, as rows."""
        return [
            StreamedEvent(
                answer=self.claim.answer,
                attempt=self.claim.attempt,
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


def claim(answer_id: uuid.UUID) -> Claim | None:
    """The right to write the answer, if it waits or its writer is dead. It goes on waiting until it is its turn."""
    now = timezone.now()
    token = uuid.uuid4()
    is_dead = Q(heartbeat_at__lt=now - HEARTBEAT_LOST_AFTER)
    claimed = Answer.objects.filter(
        Q(status=Answer.Status.PENDING) & (Q(claim=None) | is_dead) | Q(status=Answer.Status.GENERATING) & is_dead,
        pk=answer_id,
    ).update(status=Answer.Status.PENDING, claim=token, heartbeat_at=now, attempt=F("attempt") + 1, text="", error="")
    if not claimed:
        return None
    answer = Answer.objects.select_related("conversation__owner", "conversation__collection").get(pk=answer_id)
    try:
        filters = filters_of(answer)
    except InvalidQuery:
        filters = SearchFilters()
    return Claim(answer=answer, token=token, attempt=answer.attempt, filters=filters, history=turns_before(answer))


def start(claim: Claim, *, may_return: bool = True) -> Run:
    from chat.streaming import heartbeat

    run = Run(claim=claim, loop=asyncio.get_running_loop(), may_return=may_return)
    RUNS[claim.answer.pk] = run
    run.task = asyncio.create_task(_write(run), name=f"answer {claim.answer.pk}")
    run.task.add_done_callback(lambda _task: _close(run))
    heartbeat.watch(run.loop)
    return run


def stopped_message() -> str:
    return _("Stopped before the end.")


def out_of_time_message() -> str:
    return _("The site did not manage to answer in time. The question is saved: please ask again.")


def cut_off_message() -> str:
    return _("The time for this answer was over before its end.")


async def _write(run: Run) -> None:
    """Publish the answer's events; whatever happens, the last one tells the truth and is stored before it is shown."""
    draft = PartialAnswer()
    record = Record(run.claim.answer.pk, run.claim.token, run.claim.attempt, 0, Failed(broken_message()), draft=draft)
    pieces: list[str] = []
    started = time.perf_counter()

    def lap(stage: str) -> None:
        record.timings_ms.setdefault(stage, (time.perf_counter() - started) * 1000)

    async def publish() -> None:
        async with aclosing(_events(run, record)) as events:
            async for event in events:
                match event:
                    case Searched():
                        record.searched = event
                        lap("searched")
                        # In a thread: looking for instructions in the sources takes milliseconds, which others wait.
                        told = await sync_to_async(payloads.searched, thread_sensitive=False)(event)
                        run.publish("searched", told)
                    case AnswerToken():
                        lap("first_token")
                        # The last token's time counts: what follows is checking.
                        record.timings_ms["written"] = (time.perf_counter() - started) * 1000
                        pieces.append(event.text)
                        run.publish("token", {"text": event.text})
                    case Repeated():
                        lap("repeated")
                        _repeat(run, event)
                        record.outcome = event
                    case Completed() | Failed():
                        record.outcome = event

    def so_far(notice: str) -> Completed:
        return Completed("".join(pieces), (), False, draft.generator, notice, usage=draft.usage)

    try:
        with deadline.limit(settings.QUESTION_SECONDS):
            async with asyncio.timeout(settings.QUESTION_SECONDS) as limit:
                await publish()
    except asyncio.CancelledError:
        record.stopped = True
        record.outcome = so_far(stopped_message())
    except Exception as error:
        if isinstance(error, TimeoutError) and limit.expired():
            OUT_OF_TIME.labels(stage="writing" if pieces else "searching" if run.is_begun else "waiting").inc()
            logger.warning("Answer %s was not done within %g s.", run.claim.answer.pk, settings.QUESTION_SECONDS)
            record.stopped = bool(pieces)
            record.outcome = so_far(cut_off_message()) if pieces else Failed(out_of_time_message())
        else:
            logger.exception("Answer %s broke off.", run.claim.answer.pk)
            record.outcome = Failed(broken_message())
    ADMISSION.release(run.claim.answer.pk)
    lap("total")
    record.sequence = len(run.events) + 1
    run.ending = True
    # Shielded: a server that shuts down cancels everything, and the outcome must be saved all the same.
    await asyncio.shield(asyncio.ensure_future(_end(run, record)))


async def _events(run: Run, record: Record) -> AsyncGenerator[AnswerEvent | Repeated, None]:
    claim = run.claim
    method = SearchMethod(claim.answer.method) if claim.answer.method else None
    if not claim.filters.collections:
        yield Failed(_("There are no documents that you may ask. An administrator can add some."))
        return
    is_instruction = bool(await answering.in_thread(answering.instruction)(claim.answer.question))
    if not is_instruction:
        record.cache_key, repeated = await in_database(_look_up)(claim)
        if repeated is not None:
            yield repeated
            return
    # What costs next to nothing waits for nobody.
    async with contextlib.nullcontext() if is_instruction else turns.taken(run):
        answer = answering.answer(
            claim.answer.question,
            claim.filters,
            method=method,
            history=claim.history,
            draft=record.draft,
            subject=claim.answer.conversation.subject,
        )
        async with aclosing(answer) as events:
            async for event in events:
                yield event


def _look_up(claim: Claim) -> tuple[str, Repeated | None]:
    """As `repeats.look_up`; a database that does not answer is for the search to tell."""
    try:
        with statements_within(LOOK_UP_SECONDS):
            return answer_cache.look_up(claim.answer, claim.filters, claim.history)
    except SearchUnavailable:
        return "", None
    except OperationalError as error:
        logger.warning("Nobody looked for an earlier answer to serve: %s", error)
        return "", None


def _repeat(run: Run, repeated: Repeated) -> None:
    run.publish("searched", payloads.searched_before(repeated.original))
    for piece in repeated.pieces():
        run.publish("token", {"text": piece})


async def _end(run: Run, record: Record) -> None:
    name, payload = "failed", {"message": broken_message()}
    for pause_seconds in (*SAVE_PAUSES_SECONDS, None):
        try:
            name, payload = await in_database(_save)(run, record)
            break
        except Answer.DoesNotExist:
            logger.info("Answer %s was deleted while it was written.", run.claim.answer.pk)
            payload = {"message": deleted_message()}
            break
        except Exception as error:
            payload = saving.unsaved(error)
            # A database that restarts, or a cited passage deleted in this very moment: the text must not be lost to it.
            logger.exception("Answer %s could not be saved.", run.claim.answer.pk)
            if pause_seconds is not None:
                await asyncio.sleep(pause_seconds)
            else:
                await in_database(saving.give_up)(record, payload["message"])
    run.publish(name, payload)
    _forget(run)


def _save(run: Run, record: Record) -> tuple[str, dict[str, Any]]:
    return saving.save(record, run.rows(record.sequence - 1))


def _close(run: Run) -> None:
    """Let go of a run that was cancelled before its first step: nobody would ever end it."""
    if not run.ending:
        run.publish("failed", {"message": interrupted_message()})
        _forget(run)


def _forget(run: Run) -> None:
    """Let go of the run, but not of one that another loop has begun since, when this one was taken to be dead."""
    if RUNS.get(run.claim.answer.pk) is run:
        del RUNS[run.claim.answer.pk]
