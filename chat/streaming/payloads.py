"""Answers and their events as JSON: the one form in which they are stored, streamed and returned by the API."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from chat.answering.approved_answers import approval_of
from chat.answering.extractive import NAME as EXTRACTIVE
from chat.answering.injection import is_instructed
from chat.models import Answer, Citation
from chat.types import read_trace

if TYPE_CHECKING:
    from chat.types import (
        Approval,
        CheckedStatement,
        Choice,
        Completed,
        ContextSource,
        NearPlace,
        Searched,
        Usage,
        VerifiedCitation,
    )
    from retrieval.search.trace import SearchTrace
    from retrieval.types import Passage, Reformulation


# What a verified citation, its row and its JSON call the same.
_MARKER = ("marker", "marker_start", "marker_end")
_QUOTE = ("quote", "start", "end", "support", "verbatim", "marked_start", "marked_end")


def searched(event: Searched) -> dict[str, Any]:
    return {
        "sources": [source(found) for found in event.sources],
        "search_method": event.trace.search_method,
        "query_class": event.trace.query_class.value,
        "degraded": list(event.trace.degraded),
        "reformulation": _reformulation(event.trace.reformulation),
        "completed_question": completed_question(event.trace),
        "joined_question": event.trace.joined_query,
        "confidence": event.confidence,
    }


def searched_before(answer: Answer) -> dict[str, Any]:
    """As `searched`, of an answer that was saved."""
    trace = read_trace(answer.trace)
    return {
        "sources": answer.sources,
        "search_method": answer.search_method,
        "query_class": trace.query_class.value if trace else "",
        "degraded": answer.degraded,
        "reformulation": _reformulation(trace.reformulation if trace else None),
        "completed_question": answer.completed_question,
        "joined_question": answer.joined_question,
        "confidence": answer.confidence,
    }


def completed_question(trace: SearchTrace) -> str:
    """The question as it was searched and answered, where a model rewrote a follow-up, or where it was misspelt; else
    empty."""
    done = trace.reformulation
    return done.query if done is not None and done.changed and (done.completed or done.corrected) else ""


def _reformulation(done: Reformulation | None) -> dict[str, str] | None:
    """What was searched in place of the question; None when that was the question itself."""
    return {"query": done.query, "reason": done.reason, "by": done.by} if done is not None and done.changed else None


def source(found: ContextSource) -> dict[str, Any]:
    block = found.block
    return {
        "marker": found.marker,
        "collection": block.best.collection_name,
        "chunk_id": block.best.chunk_id,
        "document": document(block.best),
        "section": block.best.section,
        "page": block.best.page,
        "page_unit": block.best.page_unit,
        "content": block.content,
        "start": block.start,
        "end": block.end,
        "score": block.score,
        "instructions": is_instructed(block),
    }


def document(passage: Passage) -> dict[str, Any]:
    return {
        "id": passage.document_id,
        "title": passage.document_title,
        "url": passage.document_url,
        "collection": passage.collection,
    }


def statement(checked: CheckedStatement) -> dict[str, Any]:
    return {
        "start": checked.start,
        "end": checked.end,
        "markers": list(checked.markers),
        "support": checked.support,
        "supported": checked.supported,
        "verbatim": checked.verbatim,
        "reasons": list(checked.reasons),
        "best": None
        if checked.best_marker is None
        else {"marker": checked.best_marker, "start": checked.best_start, "end": checked.best_end},
    }


def near_place(place: NearPlace) -> dict[str, Any]:
    return {
        "collection": place.passage.collection_name,
        "document": document(place.passage),
        "section": place.passage.section,
        "page": place.passage.page,
        "page_unit": place.passage.page_unit,
        "quote": place.quote,
        "start": place.start,
        "end": place.end,
        "chunk_id": place.passage.chunk_id,
    }


def choice(offered: Choice) -> dict[str, str]:
    return asdict(offered)


def computed(event: Searched | None, outcome: Completed) -> dict[str, Any] | None:
    """What was computed over a table, of an answer that states it; None where no value is stated.

    A model writes sentences of its own about what was computed: they are checked like its others.
    """
    result = event.computed if event is not None else None
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
        # A value over many rows names the first of them.
        "rows": {"count": result.matched, "numbers": list(result.ordinals)},
    }


def usage(consumed: Usage | None) -> dict[str, Any]:
    return asdict(consumed) if consumed is not None else {}


def citation(answer: Answer, cited: VerifiedCitation) -> Citation:
    """The row, not yet saved, of a citation."""
    passage = cited.passage
    own = {name: getattr(cited, name) for name in (*_MARKER, *_QUOTE)}
    place = {name: getattr(passage, name) for name in ("chunk_id", "document_id", "document_title", "section", "page")}
    return Citation(answer=answer, **own, **place)


def completed(answer: Answer, citations: list[Citation]) -> dict[str, Any]:
    """A finished answer, whole."""
    return {
        "answer_id": str(answer.pk),
        "conversation": str(answer.conversation_id),
        "text": answer.text,
        "refused": answer.refused,
        "near": answer.near,
        "choices": answer.choices,
        "citations": [
            {
                **{name: getattr(cited, name) for name in _MARKER},
                "chunk_id": cited.chunk_id,
                "collection": collection_name(answer, cited),
                "document": {
                    "id": cited.document_id,
                    "title": cited.document_title,
                    **{name: _of_document(answer, cited, name) for name in ("url", "collection")},
                },
                "section": cited.section,
                "page": cited.page,
                "page_unit": page_unit(answer, cited),
                **{name: getattr(cited, name) for name in _QUOTE},
            }
            for cited in citations
        ],
        "search_method": answer.search_method,
        "degraded": answer.degraded,
        "generator": answer.generator,
        "notice": answer.notice,
        "statements": answer.statements,
        "confidence": answer.confidence,
        "completed_question": answer.completed_question,
        "joined_question": answer.joined_question,
        "usage": answer.usage,
        **({"computed": answer.computed} if answer.computed else {}),
        "approved": approval(approval_of(answer.approved)),
        "repeats": str(answer.repeats_id) if answer.repeats_id else None,
        "repeated_from": answer.repeats.completed_at.isoformat()
        if answer.repeats and answer.repeats.completed_at
        else None,
    }


def approval(of: Approval | None) -> dict[str, str] | None:
    """Who approved an answer, and when; None for any other answer."""
    return None if of is None else {"by": of.by, "on": of.on.isoformat()}


def _of_document(answer: Answer, cited: Citation, name: str) -> str:
    return next((str(source["document"].get(name, "")) for source in _sources_of(answer, cited)), "")


def collection_name(answer: Answer, cited: Citation) -> str:
    """What readers call the collection of the cited document; empty in answers that were saved without it."""
    return next((str(source.get("collection", "")) for source in _sources_of(answer, cited)), "")


def page_unit(answer: Answer, cited: Citation) -> str:
    """What a page of the cited document is; answers of long ago do not tell, and then it is a page."""
    return next((str(source.get("page_unit", "page")) for source in _sources_of(answer, cited)), "page")


def _sources_of(answer: Answer, cited: Citation) -> Iterator[dict[str, Any]]:
    return (source for source in answer.sources if source["document"]["id"] == cited.document_id)
