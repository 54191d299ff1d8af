"""Writing one answer: a task of the process that leased it.

Events reach followers in the same process at once, and the database a few times a second (see
`chat.streaming.runs`). Whatever happens, the last event tells the truth and is stored before it is shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import OperationalError
from django.utils.translation import gettext as _

from chat import budgets, conf
from chat.answering import pipeline
from chat.answering.threads import in_thread
from chat.conversations import rights
from chat.metrics import OUT_OF_TIME, QUEUE_SECONDS
from chat.models import Answer
from chat.streaming import answer_cache, payloads, runs, saving
from chat.streaming.admission import ADMISSION
from chat.streaming.answer_cache import CachedAnswer
from chat.streaming.runs import RUNS, Run, in_database
from chat.streaming.saving import broken_message, deleted_message, interrupted_message, stopped_message
from chat.types import AnswerEvent, AnswerToken, Completed, Failed, Searched
from retrieval.exceptions import SearchUnavailable
from retrieval.infrastructure import deadline
from retrieval.infrastructure.database import NotWaiting, statements_within
from retrieval.infrastructure.tracing import span
from retrieval.types import SearchMethod

logger = logging.getLogger(__name__)

# Waits between the attempts to save a finished answer.
SAVE_PAUSES_SECONDS = (0.2, 1.0, 3.0)
# For finding an earlier answer that serves again.
LOOK_UP_SECONDS = 2.0


def start(run: Run) -> None:
    run.loop = asyncio.get_running_loop()
    RUNS[run.answer.pk] = run
    run.task = asyncio.create_task(_write(run), name=f"answer {run.answer.pk}")
    run.task.add_done_callback(lambda _task: _close(run))
    runs.watch(run.loop)


def out_of_time_message() -> str:
    return _("The site did not manage to answer in time. The question is saved: please ask again.")


def without_model_message() -> str:
    return _("Your budget for the language model is used up for today: until tomorrow the documents are quoted.")


def cut_off_message() -> str:
    return _("The time for this answer was over before its end.")


async def _write(run: Run) -> None:
    """Publish the answer's events; whatever happens, the last one tells the truth and is stored before it is shown."""
    run.outcome = Failed(broken_message())
    pieces: list[str] = []
    started = time.perf_counter()

    def milliseconds() -> float:
        return (time.perf_counter() - started) * 1000

    def so_far(notice: str) -> Completed:
        return Completed("".join(pieces), (), False, run.draft.generator, notice, usage=run.draft.usage)

    try:
        with deadline.limit(settings.QUESTION_SECONDS), span("answer"):
            async with asyncio.timeout(settings.QUESTION_SECONDS) as limit:
                await _publish(run, pieces, milliseconds)
    except asyncio.CancelledError:
        if not run.is_stopped:
            # This process ends: see `leave_to_others`.
            run.ending = True
            ADMISSION.release(run.answer.pk)
            await asyncio.shield(asyncio.ensure_future(_hand_over(run)))
            return
        run.is_partial = True
        run.outcome = so_far(stopped_message())
    except Exception as error:
        if isinstance(error, TimeoutError) and limit.expired():
            OUT_OF_TIME.labels(stage="writing" if pieces else "searching" if run.is_begun else "waiting").inc()
            logger.warning("Answer %s was not done within %g s.", run.answer.pk, settings.QUESTION_SECONDS)
            run.is_partial = bool(pieces)
            run.outcome = so_far(cut_off_message()) if pieces else Failed(out_of_time_message())
        else:
            logger.exception("Answer %s broke off.", run.answer.pk)
            run.outcome = Failed(broken_message())
    ADMISSION.release(run.answer.pk)
    run.timings_ms["total"] = milliseconds()
    run.ending = True
    # Shielded: a server that shuts down cancels everything, and the outcome must be saved all the same.
    await asyncio.shield(asyncio.ensure_future(_end(run)))


async def _publish(run: Run, pieces: list[str], milliseconds: Callable[[], float]) -> None:
    """Publish the events but the last one, and note in the run what they tell; ``pieces`` are the texts so far."""
    async with aclosing(_events(run)) as events:
        async for event in events:
            match event:
                case Searched():
                    run.searched = event
                    run.timings_ms.setdefault("searched", milliseconds())
                    # In a thread: it looks for instructions in the sources, which takes milliseconds.
                    payload = await sync_to_async(payloads.searched, thread_sensitive=False)(event)
                    run.publish("searched", payload)
                case AnswerToken():
                    run.timings_ms.setdefault("first_token", milliseconds())
                    # The last token's time counts: what follows is checking.
                    run.timings_ms["written"] = milliseconds()
                    pieces.append(event.text)
                    run.publish("token", {"text": event.text})
                case CachedAnswer():
                    run.timings_ms.setdefault("repeated", milliseconds())
                    _publish_cached(run, event)
                    run.outcome = event
                case Completed() | Failed():
                    run.outcome = event


async def _events(run: Run) -> AsyncGenerator[AnswerEvent | CachedAnswer, None]:
    answer = run.answer
    method = SearchMethod(answer.method) if answer.method else None
    if not run.filters.collections:
        yield Failed(_("There are no documents that you may ask. An administrator can add some."))
        return
    try:
        writer = await in_database(lambda: conf.writer_for(rights.asker_of(answer), answer.model))()
    except LookupError:
        yield Failed(_("You can no longer choose the language model “%s”: choose another one.") % answer.model)
        return
    is_instruction = bool(await in_thread(pipeline.instruction)(answer.question))
    if not is_instruction:
        run.cache_key, cached = await in_database(_look_up)(run, writer)
        if cached is not None:
            yield cached
            return
    # What costs next to nothing waits for nobody.
    async with contextlib.nullcontext() if is_instruction else _turn(run):
        may_use_model = await in_database(budgets.may_use_model)(answer.conversation.owner)
        answering_events = pipeline.answer(
            answer.question,
            run.filters,
            method=method,
            history=run.history,
            draft=run.draft,
            subject=answer.conversation.subject,
            model=writer,
            without_model="" if may_use_model else without_model_message(),
        )
        async with aclosing(answering_events) as events:
            async for event in events:
                yield event


def _look_up(run: Run, writer: str) -> tuple[str, CachedAnswer | None]:
    """As `answer_cache.look_up`; the search reports a database that does not answer."""
    try:
        with statements_within(LOOK_UP_SECONDS):
            return answer_cache.look_up(run.answer, run.filters, run.history, writer)
    except SearchUnavailable:
        return "", None
    except OperationalError as error:
        logger.warning("The answer cache was not asked: %s", error)
        return "", None


def _publish_cached(run: Run, cached: CachedAnswer) -> None:
    run.publish("searched", payloads.searched_before(cached.original))
    for text in cached.split_text():
        run.publish("token", {"text": text})


async def _end(run: Run) -> None:
    name, payload = "failed", {"message": broken_message()}
    owner_pk, usage = run.answer.conversation.owner_id, run.draft.usage
    for pause_seconds in (*SAVE_PAUSES_SECONDS, None):
        try:
            if owner_pk is not None and usage is not None:
                # Before the answer, which may be deleted or in other hands by now: the model was paid all the same.
                await in_database(budgets.count_use)(owner_pk, usage)
                usage = None
            name, payload = await in_database(saving.save)(run)
            break
        except Answer.DoesNotExist:
            logger.info("Answer %s was deleted while it was written.", run.answer.pk)
            payload = {"message": deleted_message()}
            break
        except Exception as error:
            payload = saving.unsaved(error)
            # A database that restarts, or a cited passage deleted in this very moment: the text must not be lost to it.
            logger.exception("Answer %s could not be saved.", run.answer.pk)
            if pause_seconds is not None:
                await asyncio.sleep(pause_seconds)
            else:
                await in_database(saving.give_up)(run, payload["message"])
    run.publish(name, payload, run.saved)
    _forget(run)


async def leave_to_others(seconds: float) -> None:
    """Give up the answers of this loop, which ends: each is begun anew by its next reader, in another process. Those
    that are being saved have so many seconds for it."""
    own = [run for run in RUNS.values() if run.loop is asyncio.get_running_loop() and run.task is not None]
    tasks = [run.task for run in own if run.task is not None]
    for run in own:
        if not run.ending and run.task is not None:
            run.task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


async def _hand_over(run: Run) -> None:
    try:
        await in_database(runs.hand_over)(run.answer)
    except Exception:
        logger.exception("Answer %s could not be handed over: it waits until this process is silent.", run.answer.pk)
    else:
        logger.info("Answer %s is left to another process, because this one ends.", run.answer.pk)
    _forget(run)


def _close(run: Run) -> None:
    """Forget a run that was cancelled before its first step: nothing else would end it."""
    if not run.ending:
        run.publish("failed", {"message": interrupted_message()})
        _forget(run)


def _forget(run: Run) -> None:
    """Forget the run, but not one that another loop has begun since, when this one was taken to be dead."""
    if RUNS.get(run.answer.pk) is run:
        del RUNS[run.answer.pk]


@asynccontextmanager
async def _turn(run: Run) -> AsyncGenerator[None, None]:
    """Within it is the run's turn. While it waits, it publishes `queued` with its place whenever that changes, and
    with 0 when the waiting is over.
    """
    changed = asyncio.Event()

    def wake() -> None:
        # A loop that is closed has nobody who waits.
        with contextlib.suppress(RuntimeError):
            run.loop.call_soon_threadsafe(changed.set)

    started = run.loop.time()
    ADMISSION.join(run.answer.pk, wake, run.caller)
    published = 0
    try:
        while True:
            changed.clear()
            place = ADMISSION.place(run.answer.pk)
            if place <= 0:
                break
            if place != published:
                run.publish("queued", {"place": place})
                published = place
            await changed.wait()
        await in_database(_begin)(run.answer)
        ADMISSION.begin(run.answer.pk)
        QUEUE_SECONDS.observe(run.loop.time() - started)
        run.is_begun = True
        if published:
            run.publish("queued", {"place": 0})
        yield
    finally:
        ADMISSION.leave(run.answer.pk)


def _begin(answer: Answer) -> None:
    """The answer is GENERATING then, unless it was stopped meanwhile: then its heartbeat ends it."""
    answer.held().filter(NotWaiting(), status=Answer.Status.PENDING).update(status=Answer.Status.GENERATING)
