from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from chat.answering.approved_answers import get_approval, split_text
from chat.answering.checking.citations import CitationMarker
from chat.answering.extractive import NAME as EXTRACTIVE
from chat.answering.results import find_snippet
from chat.models import Answer, Citation, Conversation
from chat.payload_types import (
    AlternativePassagePayload,
    CompletedEventPayload,
    ComputedPayload,
    DocumentPlacePayload,
    SearchedEventPayload,
    ShownRowsPayload,
    SourcePayload,
    TokenPayload,
    TraceFieldsPayload,
)
from chat.types import CitedDocument, CitedWords, SavedCitation, read_trace
from core.dataclass_json import to_json
from retrieval.passage_address import build_passage_url
from retrieval.text.instructions import find_instructions

if TYPE_CHECKING:
    from chat.types import AlternativePassage, AnswerDraft, CompletedEvent, ContextSource, VerifiedCitation
    from retrieval.search.trace import SearchTrace
    from retrieval.types import Passage

_WORDS = [each.name for each in fields(CitedWords)]


def build_token_payload(text: str, markers: Iterable[CitationMarker] | None = None) -> TokenPayload:
    """Return the payload of the event `token`. If ``markers`` is None, every ``[n]`` in ``text`` is a marker."""
    if markers is None:
        return {"text": text}
    return {
        "text": text,
        "markers": [{"marker": each.number, "start": each.start, "end": each.end} for each in markers],
    }


def build_token_payloads(answer: Answer) -> Iterator[TokenPayload]:
    cited = [(each.marker, each.marker_start, each.marker_end) for each in answer.citations.all()]
    begin = 0
    for piece in split_text(answer.text):
        end = begin + len(piece)
        yield build_token_payload(
            piece, [CitationMarker(*each).shift_by(-begin) for each in cited if begin <= each[1] < end]
        )
        begin = end


def build_searched_event_payload(draft: AnswerDraft) -> SearchedEventPayload:
    trace = draft.trace
    return {
        "sources": [build_source_payload(found, draft.question) for found in draft.sources],
        "search_method": trace.search_method,
        "degraded": list(trace.degraded),
        "completed_question": find_completed_question(trace),
        "joined_question": trace.joined_query,
        "confidence": draft.confidence,
        **_read_trace_fields(trace),
    }


def build_stored_searched_payload(answer: Answer) -> SearchedEventPayload:
    return {
        "sources": answer.sources,
        "search_method": answer.search_method,
        "degraded": answer.degraded,
        "completed_question": answer.completed_question,
        "joined_question": answer.joined_question,
        "confidence": answer.confidence,
        **_read_trace_fields(read_trace(answer.trace)),
    }


def _read_trace_fields(trace: SearchTrace | None) -> TraceFieldsPayload:
    done = trace.reformulation if trace is not None else None
    return {
        "query_class": trace.query_class.value if trace is not None else "",
        "reformulation": {"query": done.query, "reason": done.reason, "by": done.by}
        if done is not None and done.changed
        else None,
    }


def find_completed_question(trace: SearchTrace) -> str:
    """Return the question that was searched instead of the user's; "" if there is none."""
    done = trace.reformulation
    return done.query if done is not None and done.changed and (done.completed or done.corrected) else ""


def set_search_fields(answer: Answer, draft: AnswerDraft) -> None:
    found = build_searched_event_payload(draft)
    answer.sources, answer.search_method, answer.degraded = found["sources"], found["search_method"], found["degraded"]
    answer.completed_question, answer.joined_question = found["completed_question"], found["joined_question"]
    answer.confidence = found["confidence"]
    answer.profile_version_id = draft.profile_version


def set_outcome_fields(answer: Answer, draft: AnswerDraft | None, outcome: CompletedEvent) -> list[Citation]:
    """Set the answer's fields from the finished draft. Return its citations, not yet saved."""
    for name in ("text", "state", "refused", "generator", "notice"):
        setattr(answer, name, getattr(outcome, name))
    answer.alternatives = [_describe_alternative_passage(each) for each in outcome.alternatives]
    answer.choices = to_json(outcome.choices)
    answer.statements = to_json(outcome.statements)
    answer.usage = to_json(outcome.usage) if outcome.usage is not None else {}
    answer.approved_id = outcome.approval.approved_id if outcome.approval is not None else None
    answer.prompt_version = draft.prompt_version if draft is not None else None
    answer.dialogue = list(draft.dialogue) if draft is not None and outcome.generator == draft.generator else []
    answer.computed = _describe_computed_result(draft, outcome)
    answer.table = to_json(draft.table) if draft is not None else None
    answer.written = draft.written if draft is not None and outcome.generator == draft.generator else ""
    return [_build_citation(answer, cited) for cited in outcome.citations]


def build_unsaved_answer(
    question: str, draft: AnswerDraft | None, outcome: CompletedEvent
) -> tuple[Answer, list[Citation]]:
    answer = Answer(conversation=Conversation(), question=question)
    if draft is not None:
        set_search_fields(answer, draft)
    return answer, set_outcome_fields(answer, draft, outcome)


def build_source_payload(found: ContextSource, question: str) -> SourcePayload:
    """Return the payload of a source. ``snippet`` is the part that best matches the question."""
    block = found.block
    return {
        "marker": found.marker,
        **_describe_place(block.best),
        "content": block.content,
        "start": block.start,
        "end": block.end,
        "score": block.score,
        "snippet": find_snippet(question, block.best.content),
        "instructions": _has_instructions(block.content),
    }


@functools.lru_cache(maxsize=2048)
def _has_instructions(content: str) -> bool:
    return bool(find_instructions(content))


def _describe_place(passage: Passage) -> DocumentPlacePayload:
    return {
        "collection": passage.collection_name,
        "chunk_id": passage.chunk_id,
        "document": {
            "id": passage.document_id,
            "title": passage.document_title,
            "url": passage.document_url,
            "collection": passage.collection,
            "media_type": passage.media_type,
        },
        "section": passage.section,
        "page": passage.page,
        "page_unit": passage.page_unit,
    }


def _describe_alternative_passage(found: AlternativePassage) -> AlternativePassagePayload:
    passage = found.passage
    return {
        **_describe_place(passage),
        "url": build_passage_url(passage.document_id, found.start, found.end),
        "text": found.text,
        "quote": found.quote,
        "start": found.start,
        "end": found.end,
        "score": found.score,
    }


def _describe_computed_result(draft: AnswerDraft | None, outcome: CompletedEvent) -> ComputedPayload | None:
    result = draft.computed if draft is not None else None
    if result is None or not result.is_computed or outcome.refused or outcome.generator != EXTRACTIVE:
        return None
    return {
        "operation": result.operation.value,
        "values": list(result.answers),
        "conditions": list(result.conditions),
        "table": {
            "document": {"id": result.document_id, "title": result.document_title},
            "caption": result.caption,
            "rows": result.total,
        },
        "rows": {"count": result.matched, "numbers": list(result.ordinals)},
    }


def _build_citation(answer: Answer, cited: VerifiedCitation) -> Citation:
    passage = cited.passage
    own = {name: getattr(cited, name) for name in _WORDS}
    place = {name: getattr(passage, name) for name in ("chunk_id", "document_id", "document_title", "section", "page")}
    return Citation(answer=answer, **own, **place)


def build_completed_payload(answer: Answer, citations: Iterable[Citation]) -> CompletedEventPayload:
    """Return the payload of a finished answer. If it repeats an earlier answer, that answer's id is left out."""
    approval = get_approval(answer.approved)
    return {
        "answer": answer.text,
        "answer_id": str(answer.pk),
        "conversation": str(answer.conversation_id),
        "state": answer.state,
        "refused": answer.refused,
        "alternatives": answer.alternatives,
        "choices": answer.choices,
        "citations": [to_json(read_citation(answer, cited)) for cited in citations],
        "search_method": answer.search_method,
        "degraded": answer.degraded,
        "generator": answer.generator,
        "notice": answer.notice,
        "cut_off": is_cut_off(answer),
        "statements": answer.statements,
        "confidence": answer.confidence,
        "completed_question": answer.completed_question,
        "joined_question": answer.joined_question,
        "filters": answer.asked_filters,
        "usage": answer.usage,
        **_list_shown_rows(answer),
        "approved": None if approval is None else {"by": approval.by, "on": approval.on.isoformat()},
        "repeats": answer.repeats_id is not None,
        "repeated_from": answer.repeats.completed_at.isoformat()
        if answer.repeats and answer.repeats.completed_at
        else None,
    }


def _list_shown_rows(answer: Answer) -> ShownRowsPayload:
    shown: ShownRowsPayload = {}
    if answer.computed:
        shown["computed"] = answer.computed
    if answer.table:
        shown["table"] = answer.table
    return shown


def is_cut_off(answer: Answer) -> bool:
    # Only this field of the trace is read, because reading all of it takes milliseconds.
    return answer.status == Answer.Status.STOPPED or bool((answer.trace or {}).get("cut_off"))


def read_citation(answer: Answer, cited: Citation) -> SavedCitation:
    """Return a stored citation in the form that pages and the API use."""
    found = next((each for each in answer.sources if each["document"]["id"] == cited.document_id), None)
    document = found["document"] if found is not None else None
    return SavedCitation(
        **{name: getattr(cited, name) for name in _WORDS},
        chunk_id=cited.chunk_id,
        collection=found.get("collection", "") if found is not None else "",
        document=CitedDocument(
            id=cited.document_id,
            title=cited.document_title,
            url=document.get("url", "") if document is not None else "",
            collection=document.get("collection", "") if document is not None else "",
        ),
        section=cited.section,
        page=cited.page,
        page_unit=found.get("page_unit", "page") if found is not None else "page",
    )
