"""Streams of answers: begun once, followed by anyone who may read them, from any web process.

Followers in the writing process read from memory. Followers in other processes, and those who reconnect, read from the
database. A generation stops on request, or if nobody has followed it for a while. After a killed process, the next
follower begins its answers again, or the sweep closes them.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import Q
from django.db.models.functions import Now

from chat.models import Answer, StreamedEvent
from chat.streaming import payloads, writing
from chat.streaming.runs import RUNS, Run
from chat.streaming.saving import DELETED, unsaved
from core import disk
from core.threads import in_database

POLL_SECONDS = 0.25
# How often a reader stores that it follows: well within the time that the writing process waits for readers.
FOLLOWED_EVERY = timedelta(seconds=2)
PING_SECONDS = 10.0

# Readers send what they like in place of an id that they were given.
EVENT_ID = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def passing(name: str, **payload: Any) -> StreamedEvent:
    """An event for one reader, which is not stored."""
    return StreamedEvent(name=name, payload=payload)


async def follow(
    answer_id: uuid.UUID, after: str = "", *, may_return: bool = True, caller: str = ""
) -> AsyncGenerator[StreamedEvent, None]:
    """The answer's events after the one named ``after``, to the last; begins the generation if nobody has.

    If ``after`` belongs to an interrupted attempt, a `reset` comes first. Pings are sent while there is no other event.
    ``may_return`` is true if a disconnected reader can reconnect; the work for a reader who cannot is stopped at once.
    ``caller`` is whose share of the places is used.
    """
    run = RUNS.get(answer_id)
    if run is None or run.loop is not asyncio.get_running_loop():
        # Shielded: what is leased must be written, also when the reader leaves in this very moment.
        try:
            run = await asyncio.shield(asyncio.ensure_future(_start_run(answer_id, may_return, caller)))
        except DatabaseError as error:
            if not disk.is_disk_full(error):
                raise
            yield passing("failed", **unsaved(error))
            return
    if run is not None:
        run.may_return = run.may_return or may_return
        following = _follow_run(run, after)
    else:
        following = _follow_stored(answer_id, after)
    async with aclosing(following) as events:
        async for event in events:
            yield event


async def _start_run(answer_id: uuid.UUID, may_return: bool, caller: str) -> Run | None:
    """The generation, if it was for this process to begin."""
    run = await in_database(writing.acquire, answer_id)
    if run is not None:
        run.may_return, run.caller = may_return, caller
        writing.start(run)
    return run


async def finish(answer_id: uuid.UUID, caller: str = "") -> StreamedEvent:
    """Write the answer to its end, or wait for its writer; returns its last event.

    If this is cancelled, the writing stops too.
    """
    last = passing("failed", message=str(DELETED))
    async with aclosing(follow(answer_id, may_return=False, caller=caller)) as events:
        async for event in events:
            last = event
    return last


async def stop(answer_id: uuid.UUID) -> None:
    """Stop the generation, in whichever process it runs; its text so far is kept."""
    await in_database(Answer.objects.stop, answer_id)
    run = RUNS.get(answer_id)
    if run is not None and run.loop is asyncio.get_running_loop():
        run.cancel()


async def _follow_run(run: Run, after: str) -> AsyncGenerator[StreamedEvent, None]:
    run.readers += 1
    try:
        attempt, position = _position(after)
        if attempt and attempt != run.answer.attempts:
            position = 0
            yield passing("reset")
        # An id that was never given out would otherwise be waited for beyond the end.
        position = min(position, len(run.events))
        while True:
            changed = run.changed
            while position < len(run.events):
                event = run.events[position]
                position += 1
                run.last_followed = time.monotonic()
                if event.name == "lost":
                    # Another process writes it now, or it was closed: the database has the rest.
                    last_id = run.events[position - 2].event_id if position > 1 else after
                    async for stored in follow(run.answer.pk, last_id):
                        yield stored
                    return
                yield event
                if event.is_last:
                    return
            # Only who waits for the next event follows. One that was given an event and never comes back for another
            # is gone: when a line is lost in that moment, nobody may close this iterator before the garbage collector.
            run.followers += 1
            try:
                # Not `asyncio.wait_for`: before Python 3.12 it loses a cancellation that comes with the event, and
                # whoever closed the page would follow for ever (https://github.com/python/cpython/issues/86296).
                async with asyncio.timeout(PING_SECONDS):
                    await changed.wait()
            except TimeoutError:
                ping = passing("ping")
            else:
                continue
            finally:
                run.followers -= 1
                run.last_followed = time.monotonic()
            yield ping
    finally:
        run.readers -= 1
        run.last_read = time.monotonic()


async def _follow_stored(answer_id: uuid.UUID, after: str) -> AsyncGenerator[StreamedEvent, None]:
    attempt, position = _position(after)
    quiet_since = time.monotonic()
    while True:
        try:
            answer, is_alive, events = await in_database(_stored_after, answer_id, attempt, position)
        except Answer.DoesNotExist:
            yield passing("failed", message=str(DELETED))
            return
        if attempt and answer.attempts != attempt:
            yield passing("reset")
        if answer.attempts != attempt:
            attempt, position = answer.attempts, 0
        for event in events:
            position = event.sequence
            quiet_since = time.monotonic()
            yield event
            if event.is_last:
                return
        if answer.is_finished and (answer.lease is None or not is_alive):
            # The events are gone (old), or the answer was closed without one.
            yield await in_database(_build_last_event, answer)
            return
        if not is_alive and not answer.is_finished:
            async for event in follow(answer_id, after if not attempt else f"{attempt}-{position}"):
                yield event
            return
        if time.monotonic() - quiet_since > PING_SECONDS:
            quiet_since = time.monotonic()
            yield passing("ping")
        await asyncio.sleep(POLL_SECONDS)


def _position(after: str) -> tuple[int, int]:
    """Attempt and sequence of an event id; (0, 0) for none or for an id of another form."""
    known = EVENT_ID.fullmatch(after)
    return (int(known[1]), int(known[2])) if known else (0, 0)


def _stored_after(answer_id: uuid.UUID, attempt: int, position: int) -> tuple[Answer, bool, list[StreamedEvent]]:
    """The answer, whether its writer is alive, and its events after the position."""
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
    """The last event of an answer whose events were deleted."""
    last = StreamedEvent(answer=answer, attempt=answer.attempts, sequence=10**6)
    if answer.status == Answer.Status.FAILED:
        last.name, last.payload = "failed", {"message": answer.error}
    else:
        last.name, last.payload = "completed", payloads.completed(answer, answer.citations.all())
    return last
