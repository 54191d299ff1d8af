"""Save an answer, its citations and its last event in one transaction, and end interrupted answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.answering.quoted_words import find_quotes_in_current_texts
from chat.conversations import rights
from chat.conversations.history import store_sources_behind
from chat.metrics import ANSWERS, MODEL_TOKENS
from chat.models import Answer, Citation, StreamedEvent
from chat.payload_types import FailedEventPayload, SourcePayload
from chat.signals import answer_completed
from chat.streaming import answer_cache, payloads
from chat.streaming.runs import WritingRun, join_tokens
from chat.types import AnswerDraft, AnswerTrace, CompletedEvent, FailedEvent, PromptTrace
from core import disk
from core.database import fetch_rows
from core.dataclass_json import to_json
from core.job_queue import sweeping
from retrieval.index.closeness import find_uncalibrated_embedder
from retrieval.models.webhook import Webhook, announce_event
from retrieval.search.trace import SearchTrace

logger = logging.getLogger(__name__)

BROKEN = _("Something went wrong while answering. The question is saved: please ask again.")
DELETED = _("This conversation was deleted.")
INTERRUPTED = _("The answer was interrupted. The question is saved: please ask again.")
STOPPED = _("Stopped before the end.")
DISK_FULL = "disk_full"
EVENTS_KEPT = timedelta(days=1)


# The events are one JSON parameter, because `bulk_create` would quote each payload twice.
_STORE = (
    "INSERT INTO chat_streamedevent (answer_id, attempt, sequence, name, payload) "
    "SELECT * FROM jsonb_to_recordset(%s::jsonb) "
    "AS event(answer_id uuid, attempt smallint, sequence integer, name text, payload jsonb) ON CONFLICT DO NOTHING"
)


def store_events(events: Sequence[StreamedEvent]) -> None:
    """Store events. Events that another thread has already stored are skipped."""
    if not events:
        return
    rows = [
        {
            "answer_id": str(event.answer_id),
            "attempt": event.attempt,
            "sequence": event.sequence,
            "name": event.name,
            "payload": event.payload,
        }
        for event in events
    ]
    with connection.cursor() as cursor:
        cursor.execute(_STORE, [json.dumps(rows)])


def save_answer(run: WritingRun) -> StreamedEvent:
    """Save the result of a run (the writing of an answer), and return the last event.

    A second call returns the same event. The event `lost` means that another process has the answer.
    """
    outcome, draft = run.outcome, run.draft
    with transaction.atomic():
        answer = Answer.objects.select_for_update().order_by().get(pk=run.answer.pk)
        if answer.lease != run.answer.lease:
            # An earlier call has saved the answer, or another process writes it.
            known = answer.events.filter(attempt=run.answer.attempts, name__in=("completed", "failed")).first()
            return known or run.build_next_event("lost", {})
        answer.timings_ms = {stage: round(milliseconds, 2) for stage, milliseconds in run.timings_ms.items()}
        answer.total_ms = answer.timings_ms.get("total")
        is_approved = isinstance(outcome, CompletedEvent) and outcome.approval is not None
        # Answers without a search, approved answers (which may expire) and copies of cached answers are not cached.
        answer.cache_key = run.cache_key if draft is not None and not is_approved else ""
        citations: list[Citation] = []
        if draft is not None:
            payloads.set_search_fields(answer, draft)
            is_written = isinstance(outcome, CompletedEvent) and outcome.generator == draft.generator
            answer.search_ms = draft.trace.timings_ms.get("total")
            answer.trace = to_json(_build_trace(draft, answer.sources, cut_off=draft.cut_off and is_written))
        match outcome:
            case FailedEvent():
                answer.fail(outcome.message)
            case CompletedEvent():
                answer.complete(is_partial=run.is_partial)
                citations = payloads.set_outcome_fields(answer, draft, outcome)
            case Answer():
                answer.complete()
                citations = answer_cache.copy_original_answer(answer, outcome)
        citations = Citation.objects.bulk_create(_update_references(citations))
        store_sources_behind(answer)
        if answer.choices:
            answer.narrowing_key = rights.hash_reader_rights(answer.source_collections, answer.asker)
        answer.save()
        is_failed = answer.status == Answer.Status.FAILED
        last = run.build_next_event("failed" if is_failed else "completed", {"message": answer.error})
        if not is_failed:
            last.payload = payloads.build_completed_payload(answer, citations)
        last.answer = answer
        store_events([*run.events[run.stored :], last])
        if answer.status == Answer.Status.COMPLETED:
            if answer.refused and not is_approved:
                collection = answer.collection
                gap = {"answer": str(answer.pk), "question": answer.question}
                announce_event(Webhook.Event.GAP_FOUND, {**gap, "collection": collection.slug if collection else None})
            transaction.on_commit(lambda: answer_completed.send_robust(Answer, answer=answer))
    _increment_answer_metrics(answer)
    return last


def build_failure_payload(error: Exception) -> FailedEventPayload:
    """Return the payload of the event `failed` for an error that occurred while the answer was saved."""
    if disk.is_disk_full(error) or disk.is_space_low():
        return {"message": disk.get_disk_full_message(), "code": DISK_FULL}
    return {"message": str(BROKEN)}


def _update_references(citations: list[Citation]) -> list[Citation]:
    if not citations:
        return citations
    [(chunks, documents)] = fetch_rows(
        "SELECT ARRAY(SELECT id FROM retrieval_chunk WHERE id = ANY(%s::bigint[])), "
        "ARRAY(SELECT id FROM retrieval_document WHERE id = ANY(%s::bigint[]))",
        [[cited.chunk_id for cited in citations], [cited.document_id for cited in citations]],
    )
    for cited in citations:
        cited.chunk_id = cited.chunk_id if cited.chunk_id in chunks else None
        cited.document_id = cited.document_id if cited.document_id in documents else None
    for cited, found in zip(citations, find_quotes_in_current_texts(citations), strict=True):
        cited.text_version = found.version if found.is_found else ""
    return citations


def _build_trace(draft: AnswerDraft, sources: Sequence[SourcePayload], *, cut_off: bool) -> AnswerTrace:
    instructed = tuple(source["marker"] for source in sources if source["instructions"])
    return AnswerTrace(
        **{each.name: getattr(draft.trace, each.name) for each in fields(SearchTrace)},
        assembly=draft.context.statistics,
        prompt=PromptTrace(draft.left_out, instructed, tuple(draft.calls), draft.instructions_version),
        uncalibrated=find_uncalibrated_embedder(),
        evidence=draft.evidence,
        cut_off=cut_off,
        index=draft.index,
        blocks={
            str(passage.chunk_id): number
            for number, block in enumerate(draft.context.blocks, start=1)
            for passage in block.passages
        },
    )


def _increment_answer_metrics(answer: Answer) -> None:
    ANSWERS.labels(status=answer.status, refused=str(answer.refused).lower()).inc()
    if answer.usage:
        MODEL_TOKENS.labels(kind="prompt").inc(answer.usage["prompt_tokens"])
        MODEL_TOKENS.labels(kind="completion").inc(answer.usage["completion_tokens"])


@receiver(sweeping, dispatch_uid="chat.close_interrupted")
def close_interrupted_answers(**_options: Any) -> int:
    interrupted = Answer.objects.interrupted()
    closed = interrupted.unfinished().fail(str(INTERRUPTED))
    stopped = interrupted.filter(status=Answer.Status.STOPPED)
    for answer in stopped:
        text = join_tokens(answer.events.filter(attempt=answer.attempts))
        stopped.filter(pk=answer.pk, lease=answer.lease).update(
            lease=None, text=text, notice=str(STOPPED), completed_at=timezone.now()
        )
    StreamedEvent.objects.filter(answer__completed_at__lt=timezone.now() - EVENTS_KEPT).delete()
    return closed
