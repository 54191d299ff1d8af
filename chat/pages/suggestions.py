"""Suggest questions: curators' questions, or stored questions and headings whose passage a search surely finds."""

from __future__ import annotations

import logging
import re
from itertools import chain, islice, zip_longest

from django.core.cache import caches
from django.db.models import F
from django.db.models.functions import Abs

from chat.answering.checking.words import find_stems
from chat.models import Answer
from core.exceptions import RagsiteError
from core.user_types import AnyUser
from retrieval.exceptions import InvalidQuery
from retrieval.models import Chunk, Collection, CollectionStatistics, Document
from retrieval.models.narrowing import build_group_restricted_condition
from retrieval.rights.search_filters import build_filters, hash_restrictions
from retrieval.search.pipeline import search
from retrieval.text.questions import normalize_question
from retrieval.types import ANYBODY, SearchFilters

logger = logging.getLogger(__name__)

MOST_SUGGESTIONS, MOST_OF_A_COLLECTION = 9, 3
MOST_FOLLOW_UPS = 3
# A question of a passage is suggested only if a search for it finds this passage first, and if the passage's score
# exceeds the second score by this much. In a test, the first passage was right for 18 of 21 questions with such a lead.
SURE_LEAD = 0.5
_KEPT_SECONDS = 3600
_DOCUMENTS_PER_COLLECTION = 8
_PASSAGES_LOOKED_AT = 24
_SHORTEST, _LONGEST = 18, 90
_NUMBER = re.compile(r"^\d[\d.]*\s+")


def list_suggestions(user: AnyUser, chosen: str = "") -> list[tuple[str, Collection]]:
    """Return suggested questions with their collections: of the ``chosen`` collection, or mixed from all.

    They are cached for an hour.
    """
    try:
        searched = build_filters(user, chosen).collections
    except InvalidQuery:
        return []
    collections = Collection.objects.filter(pk__in=searched).order_by("name", "pk")[:MOST_SUGGESTIONS]
    found = [
        [(question, collection) for question in (_read_curated_questions(collection) or _load_suggestions(collection))]
        for collection in collections
    ]
    return list(filter(None, chain.from_iterable(zip_longest(*found))))[:MOST_SUGGESTIONS]


def list_questions(document: Document) -> list[tuple[str, Collection]]:
    """Return suggested questions, which the document's passages answer, the most specific (longest) first."""
    asking = (
        Chunk.objects.filter(document=document).exclude(canonical_questions=[], heading_path=[]).order_by("ordinal")
    )
    rows = asking.values_list("heading_path", "canonical_questions")[:_PASSAGES_LOOKED_AT]
    found = {question for path, written in rows for question in _find_standalone_questions(path, written)[:1]}
    best = sorted(found, key=_rate_specificity, reverse=True)[:MOST_OF_A_COLLECTION]
    return [(question, document.collection) for question in best]


def _read_curated_questions(collection: Collection) -> list[str]:
    lines = (" ".join(line.split()) for line in collection.suggested_questions.splitlines())
    return list(filter(None, lines))[:MOST_OF_A_COLLECTION]


def _load_suggestions(collection: Collection) -> list[str]:
    # The cache key contains the collection's version and its restrictions, so a change of either gives a new list.
    version = CollectionStatistics.objects.filter(pk=collection.pk).values_list("version", flat=True).first()
    key = f"suggestions:{collection.pk}:{version}:{hash_restrictions([collection.pk], [ANYBODY])}"
    return caches["process"].get_or_set(key, lambda: _find_suggested_questions(collection), _KEPT_SECONDS) or []


def _find_suggested_questions(collection: Collection) -> list[str]:
    # All readers of the collection see the suggestions, so they must not come from restricted documents.
    ready = Document.objects.filter(collection=collection, status=Document.Status.READY)
    documents = ready.exclude(build_group_restricted_condition()).order_by("?")
    chunks = Chunk.objects.filter(document__in=list(documents.values_list("pk", flat=True)[:_DOCUMENTS_PER_COLLECTION]))
    best: dict[int, tuple[str, int]] = {}
    asking = chunks.exclude(canonical_questions=[], heading_path=[])
    for pk, document_id, written, path in asking.values_list("pk", "document", "canonical_questions", "heading_path"):
        for question in _find_standalone_questions(path, written):
            if _rate_specificity(question) > _rate_specificity(best.get(document_id, ("", 0))[0]):
                best[document_id] = question, pk
    ordered = sorted(best.values(), key=lambda found: _rate_specificity(found[0]), reverse=True)
    filters = SearchFilters(collections=(collection.pk,), readers=(ANYBODY,))
    return list(
        islice(
            (question for question, pk in ordered if _is_clear_first_hit(question, pk, filters)), MOST_OF_A_COLLECTION
        )
    )


def _is_clear_first_hit(question: str, chunk_id: int, filters: SearchFilters) -> bool:
    try:
        hits = search(question, filters, top_k=2).hits
    except RagsiteError as error:
        logger.warning("A question is not suggested, because it could not be searched: %s", error)
        return False
    if not hits or hits[0].passage.chunk_id != chunk_id:
        return False
    return len(hits) < 2 or hits[0].score - hits[1].score >= SURE_LEAD


def _find_standalone_questions(heading_path: list[str], stored_questions: list[str]) -> list[str]:
    """Return a passage's questions that are clear without the passage.

    Candidates are the last heading in ``heading_path``, if it is a question, and ``stored_questions``.
    """
    headings = [
        _NUMBER.sub("", heading) for heading in heading_path[-1:] if heading.endswith("?") and not heading.isupper()
    ]
    # A question with only one content word, such as "What is the policy?", is unclear without the passage.
    return [
        question
        for question in (*headings, *stored_questions)
        if _SHORTEST <= len(question) <= _LONGEST and len(set(find_stems(question))) > 1
    ]


def _rate_specificity(question: str) -> tuple[int, int]:
    return (min(len(question), 70), -len(question))


def list_follow_up_questions(answer: Answer) -> tuple[str, ...]:
    """Return suggested questions from the first cited document, from passages near the citation first.

    Questions that were already asked in the conversation are left out.
    """
    citations = [cited for cited in answer.citations.all() if cited.document_id is not None]
    if answer.refused or not citations:
        return ()
    first = citations[0]
    near = (
        Chunk.objects.filter(document=first.document_id)
        .exclude(pk__in=[cited.chunk_id for cited in citations if cited.chunk_id])
        .exclude(start__lt=first.end, end__gt=first.start)
        .order_by(Abs(F("start") - first.start), "pk")
    )
    asked = {
        normalize_question(question) for question in answer.conversation.answers.values_list("question", flat=True)
    }
    cited_headings = {cited.section.rpartition(" › ")[2] for cited in citations}
    found: dict[str, str] = {}
    for path, written in near.values_list("heading_path", "canonical_questions")[:_PASSAGES_LOOKED_AT]:
        for question in _find_standalone_questions(
            [heading for heading in path[-1:] if heading not in cited_headings], written
        )[:1]:
            found.setdefault(normalize_question(question), question)
    return tuple(question for key, question in found.items() if key not in asked)[:MOST_FOLLOW_UPS]
