"""Find gaps in the documents: questions without a good answer, grouped by meaning."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
from django.core.cache import caches
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from chat.conversations.rights import find_rights
from chat.curation.approved_upkeep import find_curated_questions
from chat.models import Answer
from core.exceptions import RagsiteError
from evaluation.dashboard.scope import DashboardScope
from retrieval.index import embedder_choice
from retrieval.index.closeness import MINILM, find_current_calibration
from retrieval.models import Document
from retrieval.rights.search_filters import hash_restrictions
from retrieval.text.questions import normalize_question

if TYPE_CHECKING:
    import numpy.typing as npt

logger = logging.getLogger(__name__)

# Two groups of questions are merged if their mean cosine is at least this. Lower values merge unrelated Dutch
# questions.
LEAST_LIKENESS = 0.6
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class UnansweredQuestion:
    answer: str
    question: str
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class KnowledgeGap:
    """Similar questions without a good answer.

    ``questions`` are the different wordings, most typical first. ``asked`` are the answers, latest first. ``documents``
    are those found most often.
    """

    questions: tuple[str, ...]
    asked: tuple[UnansweredQuestion, ...]
    documents: tuple[Document, ...] = ()

    @property
    def size(self) -> int:
        return len(self.asked)

    @property
    def example_questions(self) -> tuple[UnansweredQuestion, ...]:
        last = {one.question: one for one in reversed(self.asked)}
        return tuple(last[question] for question in self.questions[:_EXAMPLES])

    @property
    def other_question_count(self) -> int:
        return max(0, len(self.questions) - _EXAMPLES)


def list_distinct_questions(asked: Sequence[UnansweredQuestion]) -> list[str]:
    """Return the different questions in alphabetical order, ignoring differences of case and white space."""
    return sorted({_normalize_question(one.question) for one in asked})


def cluster_gaps(
    asked: Sequence[UnansweredQuestion],
    vectors: npt.NDArray[np.float32],
    least_likeness: float = LEAST_LIKENESS,
) -> list[KnowledgeGap]:
    """Group by meaning the questions that had no good answer. Return the groups, the largest first.

    ``vectors`` are the unit vectors of :func:`list_distinct_questions`, in the same order, of shape (questions,
    dimension).
    """
    words = list_distinct_questions(asked)
    times: dict[str, list[UnansweredQuestion]] = {}
    for one in asked:
        times.setdefault(_normalize_question(one.question), []).append(one)
    found = []
    for members in cluster_vectors(vectors, least_likeness):
        typical = vectors[list(members)] @ vectors[list(members)].mean(axis=0)
        ranked = np.lexsort((members, -np.round(typical.astype(np.float64), 6)))
        central = [members[place] for place in ranked]
        inside = sorted(
            (one for index in members for one in times[words[index]]),
            key=lambda one: (one.asked_at, one.answer),
            reverse=True,
        )
        typed = [max(times[words[index]], key=lambda one: (one.asked_at, one.answer)).question for index in central]
        found.append(KnowledgeGap(tuple(typed), tuple(inside)))
    return sorted(found, key=lambda gap: (-gap.size, gap.questions))


def cluster_vectors(vectors: npt.NDArray[np.float32], least_likeness: float) -> list[tuple[int, ...]]:
    """Group similar vectors by average linkage (UPGMA), and return the row numbers of each group.

    Joined groups have a mean cosine of at least ``least_likeness``. Groups are ordered by their first row. Source:
    Sokal and Michener, "A Statistical Method for Evaluating Systematic Relationships", 1958.
    """
    number = len(vectors)
    if number == 0:
        return []
    members: list[list[int]] = [[index] for index in range(number)]
    # Sums in another order differ in their last digits, so the values are rounded.
    likeness = np.round((vectors @ vectors.T).astype(np.float64), 6)
    np.fill_diagonal(likeness, -np.inf)
    while True:
        first, second = divmod(int(likeness.argmax()), number)
        if likeness[first, second] < least_likeness:
            return sorted(tuple(sorted(group)) for group in members if group)
        sizes = len(members[first]), len(members[second])
        joined = (sizes[0] * likeness[first] + sizes[1] * likeness[second]) / sum(sizes)
        members[first] += members[second]
        members[second] = []
        likeness[first] = likeness[:, first] = joined
        likeness[second] = likeness[:, second] = -np.inf
        likeness[first, first] = -np.inf


def _normalize_question(question: str) -> str:
    return " ".join(question.split()).casefold()


MOST_QUESTIONS = 500
_NEAREST_SQL = """
SELECT answer.id::text, (source -> 'document' ->> 'id')::bigint
  FROM chat_answer AS answer, jsonb_array_elements(answer.sources) AS source
 WHERE answer.id = ANY(%s::uuid[])
"""

MOST_GAPS = 30
NEAREST = 3
KEPT_SECONDS = 900
_SAMPLE = 20


def find_unanswered_questions(scope: DashboardScope) -> tuple[list[UnansweredQuestion], int]:
    """Return the latest questions with a refused or unhelpful answer, at most 500, and how many there are.

    Questions that a curator has settled are left out.
    """
    bad = scope.answers().filter(Answer.build_knowledge_gap_condition()).order_by("-completed_at", "pk")
    rows = bad.only("question", "completed_question", "joined_question", "completed_at")[:MOST_QUESTIONS]
    # A follow-up question is shown as it was rewritten for the search, so that it needs no earlier questions.
    found = [
        UnansweredQuestion(str(row.pk), row.standalone_question, row.completed_at)
        for row in rows
        if row.completed_at is not None
    ]
    done = find_curated_questions(one.question for one in found)
    found = [one for one in found if normalize_question(one.question) not in done]
    return found, len(found) if len(found) < MOST_QUESTIONS else bad.count()


def find_nearest_documents(answers: Sequence[Sequence[str]], readable: QuerySet[Document]) -> list[list[Document]]:
    """Return for each group of answers the three documents that searches found most often."""
    ids = sorted({pk for group in answers for pk in group})
    found: dict[str, set[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_SQL, [ids])
        for pk, document in cursor.fetchall():
            found.setdefault(pk, set()).add(document)
    documents = readable.in_bulk({document for ids in found.values() for document in ids})
    nearest = []
    for group in answers:
        counted = Counter(document for pk in group for document in found.get(pk, ()) if document in documents)
        ranked = sorted(counted, key=lambda document: (-counted[document], document))
        nearest.append([documents[document] for document in ranked[:NEAREST]])
    return nearest


@dataclass(frozen=True, slots=True)
class GapReport:
    """The largest groups of questions without a good answer.

    ``total`` is the number of these questions, ``read`` the number of the latest ones, which were grouped, and
    ``groups`` the number of groups.
    """

    gaps: list[KnowledgeGap] = field(default_factory=list)
    groups: int = 0
    read: int = 0
    total: int = 0
    found_at: datetime | None = None
    error: str = ""


def find_knowledge_gaps(scope: DashboardScope) -> GapReport:
    """Return the groups of questions without a good answer, cached for 15 minutes or until the next such question."""
    asked, total = find_unanswered_questions(scope)
    if not asked:
        return GapReport()
    name = embedder_choice.get_embedder().name
    # The result names documents, so the cache key contains the viewer's rights.
    rights = find_rights(scope.viewer)
    whose = f"{rights}:{hash_restrictions(rights.collections, rights.readers)}"
    newest = f"{total}:{asked[0].answer}"
    key = f"gaps:{scope.days}:{scope.collection and scope.collection.pk}:{newest}:{name}:{whose}"
    key = hashlib.sha256(key.encode()).hexdigest()
    kept: GapReport | None = caches["process"].get(key)
    if kept is not None:
        return kept
    words = list_distinct_questions(asked)
    try:
        vectors = embedder_choice.get_embedder().embed_documents(words)
    except RagsiteError as error:
        logger.warning("Unanswered questions are not grouped, because the embedder does not answer: %s", error)
        return GapReport(read=len(asked), total=total, error=str(error))
    least_likeness = (find_current_calibration() or MINILM).convert_to_cosine(LEAST_LIKENESS)
    grouped = cluster_gaps(asked, vectors, least_likeness)
    shown = grouped[:MOST_GAPS]
    near = find_nearest_documents([[one.answer for one in gap.asked[:_SAMPLE]] for gap in shown], scope.documents())
    found = GapReport(
        [replace(gap, documents=tuple(documents)) for gap, documents in zip(shown, near, strict=True)],
        len(grouped),
        len(asked),
        total,
        timezone.now(),
    )
    caches["process"].set(key, found, KEPT_SECONDS)
    return found
