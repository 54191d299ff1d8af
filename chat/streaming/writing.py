"""Write answers in this process.

The last event of an answer is stored before readers get it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from contextvars import Context

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import OperationalError
from django.utils.translation import gettext as _

from chat import budgets
from chat.answering import pipeline, writers
from chat.conversations.history import list_turns_before
from chat.metrics import OUT_OF_TIME, QUEUE_SECONDS
from chat.models import Answer
from chat.streaming import answer_cache, payloads, saving
from chat.streaming.admission import ADMISSION
from chat.streaming.heartbeats import WATCHES, watch_runs
from chat.streaming.runs import RUNS, WritingRun
from chat.streaming.saving import BROKEN, DELETED, INTERRUPTED, STOPPED
from chat.types import AnswerDraft, AnswerEvent, AnswerToken, CompletedEvent, FailedEvent, TokensWithdrawnEvent
from core import deadline
from core.database import limit_statements
from core.read_once import cache_reads_in_block
from core.threads import run_in_database_thread
from core.tracing import span
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.types import SearchFilters, SearchMethod

logger = logging.getLogger(__name__)

SAVE_PAUSES_SECONDS = (0.2, 1.0, 3.0)
LOOK_UP_SECONDS = 2.0


def acquire_run(answer_id: uuid.UUID) -> WritingRun | None:
    """Lease an answer (reserve it for this process) to write it; None if it is finished or leased already."""
    answer = Answer.objects.acquire_for_writing(answer_id)
    if answer is None:
        return None
    try:
        filters = answer.build_search_filters()
    except InvalidQuery:
        filters = SearchFilters()
    return WritingRun(answer, filters, list_turns_before(answer))


def start_answer_writing(run: WritingRun) -> None:
    run.loop = asyncio.get_running_loop()
    RUNS[run.answer.pk] = run
    run.task = asyncio.create_task(_write_answer(run), name=f"answer {run.answer.pk}")
    run.task.add_done_callback(lambda _task: _interrupt_run(run))
    watching = WATCHES.get(run.loop)
    if watching is None or watching.done():
        # The task works for all answers, so it must not inherit the context of one request.
        WATCHES[run.loop] = run.loop.create_task(watch_runs(run.loop), name="heartbeat of answers", context=Context())


async def _write_answer(run: WritingRun) -> None:
    run.outcome = FailedEvent(str(BROKEN))
    started = time.perf_counter()
    try:
        with deadline.limit_time(settings.QUESTION_SECONDS), span("answer"):
            async with asyncio.timeout(settings.QUESTION_SECONDS) as limit:
                await _publish_run_events(run, started)
    except asyncio.CancelledError:
        if not run.is_stopped:
            run.ending = True
            ADMISSION.release_reservation(run.answer.pk)
            await asyncio.shield(asyncio.ensure_future(_release_answer(run)))
            return
        run.is_partial = True
        run.outcome = _complete_early(run, str(STOPPED))
    except Exception as error:
        if isinstance(error, TimeoutError) and limit.expired():
            is_partial = bool(run.written_text)
            OUT_OF_TIME.labels(stage="writing" if is_partial else "searching" if run.is_begun else "waiting").inc()
            logger.warning("Answer %s was not done within %g s.", run.answer.pk, settings.QUESTION_SECONDS)
            run.is_partial = is_partial
            run.outcome = (
                _complete_early(run, _("The time for this answer was over before its end."))
                if is_partial
                else FailedEvent(
                    _("The site did not manage to answer in time. The question is saved: please ask again.")
                )
            )
        else:
            logger.exception("Answer %s broke off.", run.answer.pk)
            run.outcome = FailedEvent(str(BROKEN))
    ADMISSION.release_reservation(run.answer.pk)
    run.timings_ms["total"] = (time.perf_counter() - started) * 1000
    run.ending = True
    # A shutdown cancels all tasks. The shield lets this one save the result.
    await asyncio.shield(asyncio.ensure_future(_end_run(run)))


def _complete_early(run: WritingRun, notice: str) -> CompletedEvent:
    generator, usage = (run.draft.generator, run.draft.usage) if run.draft is not None else ("", None)
    return CompletedEvent(run.written_text, (), generator, notice=notice, usage=usage)


async def _publish_run_events(run: WritingRun, started: float) -> None:
    async with aclosing(_generate_events(run)) as events:
        async for event in events:
            milliseconds = (time.perf_counter() - started) * 1000
            match event:
                case AnswerDraft():
                    run.draft = event
                    run.timings_ms.setdefault("searched", milliseconds)
                    # The search for instructions in the sources takes milliseconds, so a thread does it.
                    run.publish_next_event(
                        "searched",
                        await sync_to_async(payloads.build_searched_event_payload, thread_sensitive=False)(event),
                    )
                case AnswerToken():
                    run.timings_ms.setdefault("first_token", milliseconds)
                    run.timings_ms["written"] = milliseconds
                    run.publish_next_event("token", payloads.build_token_payload(event.text, event.markers))
                case TokensWithdrawnEvent():
                    run.timings_ms.pop("first_token", None)
                    run.publish_next_event("reset", {})
                case Answer():
                    run.timings_ms.setdefault("repeated", milliseconds)
                    run.publish_next_event("searched", payloads.build_stored_searched_payload(event))
                    for payload in payloads.build_token_payloads(event):
                        run.publish_next_event("token", payload)
                    run.outcome = event
                case CompletedEvent() | FailedEvent():
                    run.outcome = event


async def _generate_events(run: WritingRun) -> AsyncGenerator[AnswerEvent | Answer, None]:
    answer = run.answer
    if not run.filters.collections:
        yield FailedEvent(_("There are no documents that you may search. An administrator can add some."))
        return
    try:
        writer, (run.cache_key, earlier) = await run_in_database_thread(_choose_writer_and_find_cached, run)
    except LookupError:
        yield FailedEvent(_("You can no longer choose the language model “%s”: choose another one.") % answer.model)
        return
    if earlier is not None:
        yield earlier
        return
    async with _wait_in_queue(run):
        without_model = ""
        owner = answer.conversation.owner
        if owner is not None and not await run_in_database_thread(budgets.may_use_model, owner):
            without_model = _(
                "Your budget for the language model is used up for today: until tomorrow the documents are quoted."
            )
        answering_events = pipeline.answer_question(
            answer.question,
            run.filters,
            method=SearchMethod(answer.method) if answer.method else None,
            history=run.history,
            subject=answer.conversation.experiment_subject,
            model=writer,
            without_model=without_model,
        )
        async with aclosing(answering_events) as events:
            async for event in events:
                yield event


@cache_reads_in_block()
def _choose_writer_and_find_cached(run: WritingRun) -> tuple[str, tuple[str, Answer | None]]:
    writer = writers.choose_writer(run.answer.asker, run.answer.model)
    return writer, _find_cached_answer(run, writer)


def _find_cached_answer(run: WritingRun, writer: str) -> tuple[str, Answer | None]:
    """Return the answer's cache key, and an earlier answer to use again or None.

    If the database fails, return "" and None.
    """
    try:
        with limit_statements(LOOK_UP_SECONDS):
            return answer_cache.find_cached_answer(run.answer, run.filters, run.history, writer)
    except SearchUnavailable:
        return "", None
    except OperationalError as error:
        logger.warning("The answer cache was not asked: %s", error)
        return "", None


@asynccontextmanager
async def _wait_in_queue(run: WritingRun) -> AsyncGenerator[None, None]:
    """Wait in the queue until the answer may be written, then run the `with` block.

    Each new position in the queue is published as an event `queued`.
    """
    changed = asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):
            run.loop.call_soon_threadsafe(changed.set)

    started = run.loop.time()
    ADMISSION.join(run.answer.pk, wake, run.caller)
    published = 0
    try:
        while True:
            changed.clear()
            place = ADMISSION.get_position(run.answer.pk)
            if place <= 0:
                break
            if place != published:
                run.publish_next_event("queued", {"place": place})
                published = place
            await changed.wait()
        await run_in_database_thread(run.answer.begin)
        ADMISSION.begin(run.answer.pk)
        QUEUE_SECONDS.observe(run.loop.time() - started)
        run.is_begun = True
        if published:
            run.publish_next_event("queued", {"place": 0})
        yield
    finally:
        ADMISSION.leave(run.answer.pk)


async def _end_run(run: WritingRun) -> None:
    last = run.build_next_event("failed", {"message": str(BROKEN)})
    owner_pk, usage = run.answer.conversation.owner_id, run.draft.usage if run.draft is not None else None
    for pause_seconds in (*SAVE_PAUSES_SECONDS, None):
        try:
            if owner_pk is not None and usage is not None:
                # Tokens cost money even if the answer was deleted, so they are counted first.
                await run_in_database_thread(budgets.count_token_use, owner_pk, usage)
                usage = None
            last = await run_in_database_thread(saving.save_answer, run)
            break
        except Answer.DoesNotExist:
            logger.info("Answer %s was deleted while it was written.", run.answer.pk)
            last.payload = {"message": str(DELETED)}
            break
        except Exception as error:
            last.payload = saving.build_failure_payload(error)
            logger.exception("Answer %s could not be saved.", run.answer.pk)
            if pause_seconds is not None:
                await asyncio.sleep(pause_seconds)
            else:
                await run_in_database_thread(run.answer.give_up, last.payload["message"])
    run.publish(last)
    _unregister_run(run)


async def release_answers_of_this_process(seconds: float) -> None:
    """Give up the leases of this event loop's answers, so that other processes can write the answers.

    Wait at most ``seconds`` for answers that are being saved.
    """
    own = [run for run in RUNS.values() if run.loop is asyncio.get_running_loop()]
    tasks = [run.task for run in own if run.task is not None]
    for run in own:
        if not run.ending and run.task is not None:
            run.task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


async def _release_answer(run: WritingRun) -> None:
    try:
        await run_in_database_thread(run.answer.release_if_unfinished)
    except Exception:
        logger.exception("Answer %s could not be handed over: it waits until this process is silent.", run.answer.pk)
    else:
        logger.info("Answer %s is left to another process, because this one ends.", run.answer.pk)
    _unregister_run(run)


def _interrupt_run(run: WritingRun) -> None:
    if not run.ending:
        run.publish_next_event("failed", {"message": str(INTERRUPTED)})
        _unregister_run(run)


def _unregister_run(run: WritingRun) -> None:
    if RUNS.get(run.answer.pk) is run:
        del RUNS[run.answer.pk]
