"""Writing one answer: a task of the process that claimed it, and the record of what it has published.

Events reach followers in the same process at once, and the database a few times a second. Whatever happens, the last
event tells the truth and is stored before it is shown.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import connection, transaction
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import answering, payloads
from chat.asking import filters_of
from chat.history import turns_before
from chat.metrics import ANSWERS
from chat.models import Answer, Citation, StreamedEvent
from chat.signals import answer_completed
from chat.types import AnswerEvent, Completed, Failed, Searched, Token
from retrieval.exceptions import InvalidQuery
from retrieval.explanation import trace_as_json
from retrieval.models import Chunk, Document
from retrieval.passages import load_passages
from retrieval.types import SearchFilters, SearchMethod, Turn

logger = logging.getLogger(__name__)

FLUSH_SECONDS = 0.25
# Waits between the attempts to save a finished answer.
SAVE_PAUSES_SECONDS = (0.2, 1.0, 3.0)
# A generation whose heart has not beaten for this long is taken to be dead.
HEARTBEAT_LOST_AFTER = timedelta(seconds=15)
# How long an answer goes on being written for a reader who may come back.
UNFOLLOWED_SECONDS = 10.0

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
    """A generation in this process, and what it has published so far."""

    claim: Claim
    loop: asyncio.AbstractEventLoop
    events: list[StreamEvent] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    followers: int = 0
    last_followed: float = field(default_factory=time.monotonic)
    stored: int = 0

    def publish(self, name: str, payload: dict[str, Any]) -> None:
        self.events.append(StreamEvent(f"{self.claim.attempt}-{len(self.events) + 1}", name, payload))
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


RUNS: dict[uuid.UUID, Run] = {}


def in_database(function: Callable[P, R]) -> Callable[P, Any]:
    """``function`` run in a thread that gives its database connection back, so that a waiting stream holds none."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            connection.close_if_unusable_or_obsolete()

    return sync_to_async(call, thread_sensitive=False)


def claim(answer_id: uuid.UUID) -> Claim | None:
    """The right to write the answer, if it waits or its writer is dead."""
    now = timezone.now()
    token = uuid.uuid4()
    claimed = Answer.objects.filter(
        Q(status=Answer.Status.PENDING)
        | Q(status=Answer.Status.GENERATING, heartbeat_at__lt=now - HEARTBEAT_LOST_AFTER),
        pk=answer_id,
    ).update(
        status=Answer.Status.GENERATING, claim=token, heartbeat_at=now, attempt=F("attempt") + 1, text="", error=""
    )
    if not claimed:
        return None
    answer = Answer.objects.select_related("conversation__owner", "conversation__collection").get(pk=answer_id)
    try:
        filters = filters_of(answer)
    except InvalidQuery:
        filters = SearchFilters()
    return Claim(answer=answer, token=token, attempt=answer.attempt, filters=filters, history=turns_before(answer))


def start(claim: Claim) -> Run:
    run = Run(claim=claim, loop=asyncio.get_running_loop())
    RUNS[claim.answer.pk] = run
    run.task = asyncio.create_task(_write(run), name=f"answer {claim.answer.pk}")
    return run


async def _write(run: Run) -> None:
    """Publish the answer's events; whatever happens, the last one tells the truth and is stored before it is shown."""
    watcher = asyncio.create_task(_watch(run))
    outcome: Completed | Failed
    searched: Searched | None = None
    pieces: list[str] = []
    stopped = False
    started = time.perf_counter()
    timings: dict[str, float] = {}
    try:
        outcome = Failed(broken_message())
        async for event in _events(run.claim):
            match event:
                case Searched():
                    searched = event
                    timings["searched"] = (time.perf_counter() - started) * 1000
                    run.publish("searched", payloads.searched(event))
                case Token():
                    timings.setdefault("first_token", (time.perf_counter() - started) * 1000)
                    pieces.append(event.text)
                    run.publish("token", {"text": event.text})
                case Completed() | Failed():
                    outcome = event
    except asyncio.CancelledError:
        stopped = True
        notice = _("Stopped before the end.")
        outcome = Completed("".join(pieces), (), refused=False, generator="", notice=notice)
    except Exception:
        logger.exception("Answer %s broke off.", run.claim.answer.pk)
        outcome = Failed(broken_message())
    finally:
        watcher.cancel()
    timings["total"] = (time.perf_counter() - started) * 1000
    # Shielded: a server that shuts down cancels everything, and the outcome must be saved all the same.
    await asyncio.shield(asyncio.ensure_future(_end(run, searched, outcome, timings, stopped=stopped)))


async def _events(claim: Claim) -> AsyncIterator[AnswerEvent]:
    method = SearchMethod(claim.answer.method) if claim.answer.method else None
    if not claim.filters.collections:
        yield Failed(_("There are no documents that you may ask. An administrator can add some."))
        return
    async for event in answering.answer(claim.answer.question, claim.filters, method=method, history=claim.history):
        yield event


async def _end(
    run: Run, searched: Searched | None, outcome: Completed | Failed, timings: dict[str, float], *, stopped: bool
) -> None:
    name, payload = "failed", {"message": broken_message()}
    for pause_seconds in (*SAVE_PAUSES_SECONDS, None):
        try:
            name, payload = await in_database(_save)(run, searched, outcome, timings, stopped)
            break
        except Exception:
            # A database that restarts, or a cited passage deleted in this very moment: the text must not be lost to it.
            logger.exception("Answer %s could not be saved.", run.claim.answer.pk)
            if pause_seconds is not None:
                await asyncio.sleep(pause_seconds)
    run.publish(name, payload)
    RUNS.pop(run.claim.answer.pk, None)


async def _watch(run: Run) -> None:
    """Store events, beat, and cancel the generation when it was stopped, lost its claim, or has no reader left."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        try:
            goes_on, followed_elsewhere = await in_database(_store)(run)
        except Exception:
            # The database is away: the generation goes on, the next round tries again, and saving the end will tell.
            logger.exception("Events of answer %s could not be stored.", run.claim.answer.pk)
            continue
        alone = not run.followers and time.monotonic() - run.last_followed > UNFOLLOWED_SECONDS
        if run.task is not None and (not goes_on or (alone and not followed_elsewhere)):
            run.task.cancel()
            return


def _store(run: Run) -> tuple[bool, bool]:
    """Write what is new; returns whether the claim still holds, and whether another process's reader follows."""
    now = timezone.now()
    with transaction.atomic():
        held = Answer.objects.filter(
            pk=run.claim.answer.pk, claim=run.claim.token, status=Answer.Status.GENERATING
        ).update(heartbeat_at=now)
        if not held:
            return False, False
        upto = len(run.events)
        _store_events(run, upto)
    run.stored = upto
    followed_at = Answer.objects.values_list("followed_at", flat=True).get(pk=run.claim.answer.pk)
    return True, followed_at is not None and now - followed_at < timedelta(seconds=UNFOLLOWED_SECONDS)


def _store_events(run: Run, upto: int) -> None:
    StreamedEvent.objects.bulk_create(
        (
            StreamedEvent(
                answer=run.claim.answer,
                attempt=run.claim.attempt,
                sequence=number,
                name=run.events[number - 1].name,
                payload=run.events[number - 1].payload,
            )
            for number in range(run.stored + 1, upto + 1)
        ),
        # The watcher's last round can still be under way when the end is saved.
        ignore_conflicts=True,
    )


def _save(
    run: Run, searched: Searched | None, outcome: Completed | Failed, timings: dict[str, float], stopped: bool
) -> tuple[str, dict[str, Any]]:
    """Save the outcome, its citations, its explanation and the last event in one transaction; returns that event."""
    with transaction.atomic():
        answer = Answer.objects.select_for_update().get(pk=run.claim.answer.pk)
        if answer.claim != run.claim.token:
            # Saved already, by an attempt whose word of success was lost; or taken over by another process.
            told = answer.events.filter(attempt=run.claim.attempt, name__in=("completed", "failed")).first()
            return (told.name, told.payload) if told else ("failed", {"message": interrupted_message()})
        if searched is not None:
            answer.sources = [payloads.source(source) for source in searched.sources]
            answer.trace = _explained(searched)
            answer.search_method = searched.trace.search_method
            answer.degraded = list(searched.trace.degraded)
            answer.completed_question = payloads.completed_question(searched.trace)
            answer.confidence = searched.confidence
            answer.profile_version_id = searched.profile_version
        answer.timings_ms = {stage: round(milliseconds, 2) for stage, milliseconds in timings.items()}
        answer.completed_at = timezone.now()
        answer.claim = None
        citations: list[Citation] = []
        if isinstance(outcome, Failed):
            answer.status = Answer.Status.FAILED
            answer.error = outcome.message
        else:
            answer.status = Answer.Status.STOPPED if stopped else Answer.Status.COMPLETED
            answer.text = outcome.text
            answer.refused = outcome.refused
            answer.generator = outcome.generator
            answer.notice = outcome.notice
            answer.statements = [payloads.statement(checked) for checked in outcome.statements]
            answer.usage = payloads.usage(outcome.usage)
            citations = Citation.objects.bulk_create(_citations(answer, outcome))
        answer.save()
        name = "failed" if isinstance(outcome, Failed) else "completed"
        payload = {"message": answer.error} if name == "failed" else payloads.completed(answer, citations)
        _store_events(run, len(run.events))
        StreamedEvent.objects.create(
            answer=answer, attempt=run.claim.attempt, sequence=len(run.events) + 1, name=name, payload=payload
        )
        if answer.status == Answer.Status.COMPLETED:
            transaction.on_commit(lambda: answer_completed.send_robust(Answer, answer=answer))
    ANSWERS.labels(status=answer.status, refused=str(answer.refused).lower()).inc()
    return name, payload


def _citations(answer: Answer, outcome: Completed) -> list[Citation]:
    """The rows of the answer's citations; words of a passage that is gone by now are kept without it."""
    citations = [payloads.citation(answer, cited) for cited in outcome.citations]
    chunks = set(Chunk.objects.filter(pk__in=[cited.chunk_id for cited in citations]).values_list("pk", flat=True))
    documents = set(
        Document.objects.filter(pk__in=[cited.document_id for cited in citations]).values_list("pk", flat=True)
    )
    for cited in citations:
        cited.chunk_id = cited.chunk_id if cited.chunk_id in chunks else None
        cited.document_id = cited.document_id if cited.document_id in documents else None
    return citations


def _explained(searched: Searched) -> dict[str, Any]:
    """The trace as JSON, with what an engineer needs to recognise each candidate."""
    explained: dict[str, Any] = trace_as_json(searched.trace)
    explained["assembly"] = dict(searched.context.statistics)
    passages = load_passages([candidate["chunk_id"] for candidate in explained["candidates"]])
    for candidate in explained["candidates"]:
        passage = passages.get(candidate["chunk_id"])
        if passage is not None:
            preview = " ".join(passage.content.split())[:160]
            candidate |= {"title": passage.document_title, "section": passage.section, "preview": preview}
    return explained


def broken_message() -> str:
    return _("Something went wrong while answering. The question is saved: please ask again.")


def interrupted_message() -> str:
    return _("The answer was interrupted. The question is saved: please ask again.")
