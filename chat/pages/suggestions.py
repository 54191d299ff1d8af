"""Questions to begin with, which the documents answer: those written for a passage, and headings that ask."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, zip_longest

from django.core.cache import caches

from chat.answering.words import stems
from retrieval.models import Chunk, Collection, Document
from retrieval.models.narrowing import is_narrowed
from retrieval.rights import narrowing_key
from retrieval.types import ANYBODY

_KEPT_SECONDS = 300
_DOCUMENTS_PER_COLLECTION = 8
_SHORTEST, _LONGEST = 18, 90
_ASKS_WHAT_AN_ACTIVITY_IS = re.compile(r"What (?:is|are) (?:the )?[A-Z]\w+ing\b")


@dataclass(frozen=True, slots=True)
class Suggestion:
    question: str
    collection_slug: str
    collection_name: str


def suggestions(user: object, count: int = 6) -> list[Suggestion]:
    """At most ``count`` questions, taken in turn from the collections in service that the user may read; kept for a few
    minutes.
    """
    collections = list(Collection.objects.readable_by(user).in_service().order_by("name", "pk")[:count])
    in_turn = chain.from_iterable(zip_longest(*map(_cached_suggestions, collections)))
    return [suggestion for suggestion in in_turn if suggestion is not None][:count]


def _cached_suggestions(collection: Collection) -> list[Suggestion]:
    # Another key as soon as a document is narrowed.
    key = f"suggestions:{collection.pk}:{narrowing_key([collection.pk], [ANYBODY])}"
    return caches["process"].get_or_set(key, lambda: _suggestions_of(collection), _KEPT_SECONDS) or []


def _suggestions_of(collection: Collection) -> list[Suggestion]:
    """One question for each of a few documents, the most telling ones."""
    # They are kept for all readers of the collection.
    ready = Document.objects.filter(collection=collection, status=Document.Status.READY)
    documents = ready.exclude(is_narrowed()).order_by("?")
    chunks = Chunk.objects.filter(document__in=list(documents.values_list("pk", flat=True)[:_DOCUMENTS_PER_COLLECTION]))
    best: dict[int, str] = {}
    asking = chunks.exclude(canonical_questions=[], heading_path=[])
    for document_id, written, path in asking.values_list("document_id", "canonical_questions", "heading_path"):
        for question in (*written, *(heading for heading in path[-1:] if heading.endswith("?"))):
            if _can_stand_alone(question) and _telling(question) > _telling(best.get(document_id, "")):
                best[document_id] = question
    questions = sorted(best.values(), key=_telling, reverse=True)
    return [Suggestion(question, collection.slug, collection.name) for question in questions]


def _can_stand_alone(question: str) -> bool:
    """Whether a reader who does not know the documents understands the question: "What is the policy?" names nothing,
    and what is called "Building a team" is not a thing."""
    is_legible = _SHORTEST <= len(question) <= _LONGEST and not _ASKS_WHAT_AN_ACTIVITY_IS.match(question)
    return is_legible and len(set(stems(question))) > 1


def _telling(question: str) -> tuple[int, int]:
    """Longer questions name more of their subject; up to what fits in two lines."""
    return (min(len(question), 70), -len(question))
