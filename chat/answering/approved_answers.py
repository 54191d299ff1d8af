"""Find the answer that a curator has approved for a question, with its current sources.

A question must equal a wording of the answer or be similar to it. Error rates: docs/quality.md.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db import DatabaseError
from django.db.models import Count, Max, QuerySet, Value
from django.db.models.functions import StrIndex
from django.utils import timezone
from django.utils.translation import gettext as _
from pgvector.django import CosineDistance

from chat.answering.checking.citations import find_markers
from chat.models import ApprovedAnswer, ApprovedQuestion, ApprovedSource
from chat.types import AnswerDraft, AnswerState, Approval, CompletedEvent, ContextSource, VerifiedCitation
from core.exceptions import RagsiteError
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import encode_query
from retrieval.index.closeness import find_current_calibration
from retrieval.models import Chunk, DocumentText
from retrieval.rights.search_filters import filter_by_document
from retrieval.search.passage_rows import load_passages
from retrieval.search.trace import SearchTrace
from retrieval.text.questions import LEAST_LIKENESS, have_same_kind_and_codes, normalize_question
from retrieval.types import AssembledContext, ContextBlock, QueryClass, RetrieverWeights, SearchFilters, Turn

logger = logging.getLogger(__name__)

NAME = "approved"

# The user may lack the right to the sources of the best candidate, so several candidates are checked.
MOST_CANDIDATES = 5
# A follow-up question with at most this many words may depend on earlier questions. So it must equal a stored question
# of the approved answer.
FEW_WORDS = 5
STREAMED_CHARACTERS = 120

_PIECE = re.compile(rf"(?s)(?:.{{{STREAMED_CHARACTERS},}}?\s+|.+$)")


def read_approved_answers_version(collections: Iterable[int]) -> list[Any]:
    """Return a value that changes when an approved answer of these collections is added, changed or withdrawn."""
    changed = ApprovedAnswer.objects.filter(collection__in=collections).aggregate(Max("updated_at"), Count("pk"))
    return [str(value) for value in changed.values()]


def split_text(text: str) -> Iterator[str]:
    """Split a finished text at white space into pieces to stream."""
    return (match.group() for match in _PIECE.finditer(text))


def find_approved_answer(
    question: str, filters: SearchFilters, history: Sequence[Turn] = ()
) -> tuple[AnswerDraft, CompletedEvent] | None:
    """Return the approved answer to the question, if the user may read all of its sources; else None.

    If a source has changed, the answer is flagged and not returned. If the database fails, the result is None.
    """
    try:
        for approved, likeness in _find_candidates(question, filters, history):
            if (sources := _find_sources(approved, filters)) is not None:
                return _build_answer(approved, question, sources, likeness)
    except DatabaseError as error:
        logger.warning("Approved answers were not looked up: %s", error)
    return None


def _find_candidates(
    question: str, filters: SearchFilters, history: Sequence[Turn]
) -> Iterator[tuple[ApprovedAnswer, float]]:
    """Yield approved answers that fit the question, with their similarity (at most 1), highest first."""
    asked = normalize_question(question)
    wordings = ApprovedQuestion.objects.filter(
        approved__in=ApprovedAnswer.objects.filter(
            ApprovedAnswer.build_in_force_condition(), collection__in=filters.collections
        )
    ).select_related("approved__approved_by")
    if not wordings.exists():
        return
    exact = list(wordings.filter(normalized=asked).order_by("-approved__approved_at", "pk"))
    yield from ((wording.approved, 1.0) for wording in exact)
    if history and len(asked.split()) <= FEW_WORDS:
        return
    calibration = find_current_calibration()
    if calibration is None:
        return
    try:
        vector = encode_query(question)
    except RagsiteError as error:
        logger.warning("A question was compared with approved ones by its words alone: %s", error)
        return
    known = {wording.pk for wording in exact}
    for wording in find_nearest_wordings(wordings, vector)[:MOST_CANDIDATES]:
        likeness = calibration.convert_to_likeness(1.0 - wording.distance)
        if likeness >= LEAST_LIKENESS and wording.pk not in known and have_same_kind_and_codes(question, wording.text):
            yield wording.approved, min(1.0, likeness)


def find_nearest_wordings(wordings: QuerySet[ApprovedQuestion], vector: Any) -> QuerySet[Any]:
    """Return the wordings with their cosine ``distance`` from ``vector``, a question's embedding, nearest first."""
    of_embedder = wordings.filter(embedder=embedder_choice.get_embedder().name, embedding__isnull=False)
    return of_embedder.annotate(distance=CosineDistance("embedding", vector)).order_by("distance", "pk")


def _find_sources(approved: ApprovedAnswer, filters: SearchFilters) -> tuple[ContextSource, ...] | None:
    found: dict[int, tuple[int, int, str]] = {}
    for source in approved.sources.all():
        at = find_quote_offset(source)
        if at is None:
            approved.flag_for_review(ApprovedAnswer.Flag.CHANGED if source.document_id else ApprovedAnswer.Flag.GONE)
            return None
        holding = Chunk.objects.filter(
            document=source.document_id, collection__in=filters.collections, start__lte=at, end__gt=at
        )
        chunk = filter_by_document(holding, filters).order_by("ordinal").values_list("pk", flat=True).first()
        if chunk is None:
            return None
        found[source.marker] = chunk, at, source.quote
    passages = load_passages(chunk for chunk, _at, _quote in found.values())
    if any(chunk not in passages for chunk, _at, _quote in found.values()):
        return None
    return tuple(
        ContextSource(
            marker,
            ContextBlock(
                best=passages[chunk],
                passages=(passages[chunk],),
                content=quote,
                start=at,
                end=at + len(quote),
                score=1.0,
                tokens=passages[chunk].token_count,
                blocks=passages[chunk].blocks,
            ),
        )
        for marker, (chunk, at, quote) in sorted(found.items())
    )


def find_quote_offset(source: ApprovedSource) -> int | None:
    """Return the offset of the cited words in their document's text; None if the document no longer contains them."""
    text = DocumentText.objects.filter(pk=source.document_id).annotate(at=StrIndex("text", Value(source.quote)))
    at = text.values_list("at", flat=True).first()
    return at - 1 if at else None


def _build_answer(
    approved: ApprovedAnswer, question: str, sources: tuple[ContextSource, ...], likeness: float
) -> tuple[AnswerDraft, CompletedEvent]:
    blocks = {source.marker: source.block for source in sources}
    citations = tuple(
        VerifiedCitation(
            marker=marker.number,
            passage=blocks[marker.number].best,
            quote=blocks[marker.number].content,
            start=blocks[marker.number].start,
            end=blocks[marker.number].end,
            marker_start=marker.start,
            marker_end=marker.end,
        )
        for marker in find_markers(approved.text)
        if marker.number in blocks
    )
    trace = SearchTrace(
        question=question,
        query=question,
        query_class=QueryClass.DEFAULT,
        rule="",
        search_method=NAME,
        profile="",
        weights=RetrieverWeights(vector=1.0, lexical=0.0),
    )
    context = AssembledContext(tuple(blocks.values()), {})
    evidence = {"likeness": round(likeness, 4)}
    return (
        AnswerDraft(question, sources, context, trace, evidence=evidence, generator=NAME),
        CompletedEvent(
            text=approved.text,
            citations=citations,
            generator=NAME,
            state=AnswerState.NOTHING if approved.kind == ApprovedAnswer.Kind.OUT_OF_SCOPE else AnswerState.ANSWER,
            approval=get_approval(approved),
        ),
    )


def get_approval(approved: ApprovedAnswer | None) -> Approval | None:
    """Return who approved the answer and when; None if it is not approved."""
    if approved is None or approved.approved_at is None:
        return None
    person = approved.approved_by
    name = person.get_full_name() or person.get_username().partition("@")[0] if person else _("a former curator")
    return Approval(approved.pk, name, timezone.localdate(approved.approved_at))
