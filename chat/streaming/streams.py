"""Stream answers: one process writes an answer, and readers in any process can follow it.

Writing stops on request, or without readers. If the process dies, the next reader starts the writing again.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

from django.db import DatabaseError
from django.db.models import Q
from django.db.models.functions import Now

from chat.models import Answer, StreamedEvent
from chat.payload_types import EventPayload
from chat.streaming import payloads, writing
from chat.streaming.runs import RUNS, WritingRun
from chat.streaming.saving import DELETED, build_failure_payload
from core import disk
from core.threads import run_in_database_thread

POLL_SECONDS = 0.25
# If another process writes the answer, the reader's process updates `followed_at` at this interval. Otherwise the
# writing would be stopped, because no reader seems to follow.
FOLLOWED_EVERY = timedelta(seconds=2)
PING_SECONDS = 10.0

EVENT_ID = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def build_unstored_event(name: str, payload: EventPayload | None = None) -> StreamedEvent:
    return StreamedEvent(name=name, payload=payload or {})


async def follow_answer_stream(
    answer_id: uuid.UUID, after: str = "", *, may_return: bool = True, caller: str = ""
) -> AsyncGenerator[StreamedEvent, None]:
    """Yield the answer's events after the id ``after``. If no process writes the answer, begin to write it.

    After an interrupted attempt, the first event is a `reset`. The writing stops if the reader disconnects, unless
    ``may_return``. ``caller`` is the account or address whose simultaneous answers are limited.
    """
    run = RUNS.get(answer_id)
    if run is None or run.loop is not asyncio.get_running_loop():
        # A leased answer must be written even if the reader leaves, so the lease is taken by a task that a disconnect
        # does not cancel.
        try:
            run = await asyncio.shield(asyncio.ensure_future(_acquire_and_start_run(answer_id, may_return, caller)))
        except DatabaseError as error:
            if not disk.is_disk_full(error):
                raise
            yield build_unstored_event("failed", build_failure_payload(error))
            return
    if run is not None:
        run.may_return = run.may_return or may_return
        following = _follow_run(run, after)
    else:
        following = _follow_stored_events(answer_id, after)
    async with aclosing(following) as events:
        async for event in events:
            yield event


async def _acquire_and_start_run(answer_id: uuid.UUID, may_return: bool, caller: str) -> WritingRun | None:
    run = await run_in_database_thread(writing.acquire_run, answer_id)
    if run is not None:
        run.may_return, run.caller = may_return, caller
        writing.start_answer_writing(run)
    return run


async def complete_answer(answer_id: uuid.UUID, caller: str = "") -> StreamedEvent:
    """Write the answer, or wait for it, and return its last event. The writing stops if this call is cancelled."""
    last = build_unstored_event("failed", {"message": str(DELETED)})
    async with aclosing(follow_answer_stream(answer_id, may_return=False, caller=caller)) as events:
        async for event in events:
            last = event
    return last


async def stop_answer(answer_id: uuid.UUID) -> None:
    """Stop the writing of an answer, in any process. The text so far is saved."""
    await run_in_database_thread(Answer.objects.stop_answer, answer_id)
    run = RUNS.get(answer_id)
    if run is not None and run.loop is asyncio.get_running_loop():
        run.cancel()


async def _follow_run(run: WritingRun, after: str) -> AsyncGenerator[StreamedEvent, None]:
    run.readers += 1
    try:
        attempt, position = _parse_position(after)
        if attempt and attempt != run.answer.attempts:
            position = 0
            yield build_unstored_event("reset")
        # The reader would wait forever for an id beyond the last event.
        position = min(position, len(run.events))
        while True:
            changed = run.changed
            while position < len(run.events):
                event = run.events[position]
                position += 1
                run.last_followed = time.monotonic()
                if event.name == "lost":
                    # Another process now writes the answer, so its events are read from the database.
                    last_id = run.events[position - 2].event_id if position > 1 else after
                    async for stored in follow_answer_stream(run.answer.pk, last_id):
                        yield stored
                    return
                yield event
                if event.is_last:
                    return
            # A reader counts only while it waits here. After a lost connection, this generator may stay paused at a
            # `yield`.
            run.followers += 1
            try:
                # Before Python 3.12, `asyncio.wait_for` loses a cancellation that comes with the event
                # (https://github.com/python/cpython/issues/86296).
                async with asyncio.timeout(PING_SECONDS):
                    await changed.wait()
            except TimeoutError:
                ping = build_unstored_event("ping")
            else:
                continue
            finally:
                run.followers -= 1
                run.last_followed = time.monotonic()
            yield ping
    finally:
        run.readers -= 1
        run.last_read = time.monotonic()


async def _follow_stored_events(answer_id: uuid.UUID, after: str) -> AsyncGenerator[StreamedEvent, None]:
    attempt, position = _parse_position(after)
    quiet_since = time.monotonic()
    while True:
        try:
            answer, is_alive, events = await run_in_database_thread(_load_events_after, answer_id, attempt, position)
        except Answer.DoesNotExist:
            yield build_unstored_event("failed", {"message": str(DELETED)})
            return
        if attempt and answer.attempts != attempt:
            yield build_unstored_event("reset")
        if answer.attempts != attempt:
            attempt, position = answer.attempts, 0
        for event in events:
            position = event.sequence
            quiet_since = time.monotonic()
            yield event
            if event.is_last:
                return
        if answer.is_finished and (answer.lease is None or not is_alive):
            # The last event is built from the answer, because stored events are deleted after a day.
            yield await run_in_database_thread(_build_last_event, answer)
            return
        if not is_alive and not answer.is_finished:
            async for event in follow_answer_stream(answer_id, after if not attempt else f"{attempt}-{position}"):
                yield event
            return
        if time.monotonic() - quiet_since > PING_SECONDS:
            quiet_since = time.monotonic()
            yield build_unstored_event("ping")
        await asyncio.sleep(POLL_SECONDS)


def _parse_position(after: str) -> tuple[int, int]:
    known = EVENT_ID.fullmatch(after)
    return (int(known[1]), int(known[2])) if known else (0, 0)


def _load_events_after(answer_id: uuid.UUID, attempt: int, position: int) -> tuple[Answer, bool, list[StreamedEvent]]:
    answer = Answer.objects.annotate(
        is_alive=Q(heartbeat_at__gte=Now() - Answer.SILENT_AFTER),
        is_followed=Q(followed_at__gte=Now() - FOLLOWED_EVERY),
    ).get(pk=answer_id)
    if not answer.is_finished and not answer.is_followed:  # type: ignore[attr-defined]  # annotated
        Answer.objects.filter(pk=answer_id).update(followed_at=Now())
    if answer.attempts != attempt:
        position = 0
    is_alive = bool(answer.is_alive)  # type: ignore[attr-defined]  # annotated
    return answer, is_alive, list(answer.events.filter(attempt=answer.attempts, sequence__gt=position))


def _build_last_event(answer: Answer) -> StreamedEvent:
    last = StreamedEvent(answer=answer, attempt=answer.attempts, sequence=10**6)
    if answer.status == Answer.Status.FAILED:
        last.name, last.payload = "failed", {"message": answer.error}
    else:
        last.name, last.payload = "completed", payloads.build_completed_payload(answer, answer.citations.all())
    return last
