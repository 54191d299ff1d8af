"""An answer's turn to be written, among those of this process and of all processes; its readers see its place."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from chat.asking import share_of
from chat.metrics import QUEUE_SECONDS
from chat.models import Answer
from chat.streaming.admission import ADMISSION, QueueFull
from chat.streaming.runs import Run, in_database
from retrieval.resilience.commits import NotWaiting
from retrieval.resilience.slots import LOOK_SECONDS

T = TypeVar("T")

# How often an answer that waits for other processes looks again, on average.
SITE_POLL_SECONDS = 0.5
# Any constant that nothing else locks: it makes counting and beginning one step, and is gone with its transaction.
_SITE_LOCK = 0x616E7377


@asynccontextmanager
async def taken(run: Run) -> AsyncGenerator[None, None]:
    """Within it is the run's turn. While it waits, it publishes `queued` with its place whenever that changes, and
    with 0 when the waiting is over.
    """
    changed = asyncio.Event()

    def wake() -> None:
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            run.loop.call_soon_threadsafe(changed.set)

    own_most = share_of(settings.ANSWERS_AT_ONCE)
    started = run.loop.time()
    places = own_most + share_of(settings.ANSWERS_WAITING)
    ticket = await _patiently(lambda: ADMISSION.join(run.answer.pk, wake, places))
    published = 0
    try:
        while True:
            changed.clear()
            place = await _patiently(lambda: ADMISSION.place(ticket, settings.ANSWERS_AT_ONCE, own_most))
            pause_seconds = None
            if place <= 0:
                if await in_database(_begin)(run.answer):
                    break
                place = place + settings.ANSWERS_AT_ONCE
                pause_seconds = SITE_POLL_SECONDS * random.uniform(0.5, 1.5)
            if place != published:
                run.publish("queued", {"place": place})
                published = place
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_seconds):
                    await changed.wait()
        await _patiently(lambda: ADMISSION.begin(ticket))
        QUEUE_SECONDS.observe(run.loop.time() - started)
        run.is_begun = True
        if published:
            run.publish("queued", {"place": 0})
        yield
    finally:
        # Shielded: a place that was not left would be taken for as long as this process lives.
        await asyncio.shield(asyncio.ensure_future(_patiently(lambda: ADMISSION.leave(ticket))))


async def _patiently(change: Callable[[], T]) -> T:
    """What ``change`` returns, tried again while it cannot be made: other pages need this loop meanwhile."""
    pause_seconds = LOOK_SECONDS
    while True:
        try:
            return change()
        except QueueFull:
            await asyncio.sleep(pause_seconds)
            pause_seconds = min(SITE_POLL_SECONDS, 2 * pause_seconds)


def _begin(answer: Answer) -> bool:
    """Whether the site has room for the answer, which is then GENERATING, unless it was stopped meanwhile: then its
    heartbeat ends it.
    """
    waiting = answer.held().filter(NotWaiting(), status=Answer.Status.PENDING)
    limit = settings.ANSWERS_AT_ONCE_SITE
    if not limit:
        waiting.update(status=Answer.Status.GENERATING)
        return True
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SITE_LOCK])
        alive = Now() - Answer.SILENT_AFTER
        writing = Answer.objects.filter(status=Answer.Status.GENERATING, heartbeat_at__gte=alive).count()
        if writing >= limit:
            return False
        waiting.update(status=Answer.Status.GENERATING)
        return True
