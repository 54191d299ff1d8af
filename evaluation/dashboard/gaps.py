"""The gaps in the documents: questions that were not answered well, embedded and grouped."""

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
from django.db.models import Q, QuerySet
from django.utils import timezone

from chat.answering.approved_answers import settled
from chat.conversations.rights import rights_of
from chat.models import ApprovedAnswer
from evaluation.dashboard.scope import DashboardScope
from retrieval import conf
from retrieval.exceptions import RetrievalError
from retrieval.index.closeness import MINILM, current_calibration
from retrieval.models import Collection, Document
from retrieval.rights import narrowing_key
from retrieval.text.questions import normalize

if TYPE_CHECKING:
    import numpy.typing as npt

logger = logging.getLogger(__name__)

# Groups of questions that the documents do not answer.
#
# Questions about the same thing lie close together in the embedder's space. They are joined by average linkage: the
# two groups whose questions are most alike on average become one, until no two groups are alike enough.

# Mean cosine below which two groups are kept apart. Chosen on the questions of SQuAD and XQuAD (Dutch), where a group
# ought to hold the questions of one paragraph; lower, and Dutch questions that share nothing but their language meet.
LEAST_LIKENESS = 0.6
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that was asked and not answered well, once."""

    answer: str
    question: str
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Gap:
    """Unanswered questions about one thing.

    ``questions`` holds each wording once, the most typical first; ``asked`` every time one of them was asked, latest
    first; ``documents`` those that were found most often for them.
    """

    questions: tuple[str, ...]
    asked: tuple[Unanswered, ...]
    documents: tuple[Document, ...] = ()

    @property
    def size(self) -> int:
        """How often it was asked."""
        return len(self.asked)

    @property
    def examples(self) -> tuple[Unanswered, ...]:
        """The three most typical wordings, each as it was asked the last time."""
        last = {one.question: one for one in reversed(self.asked)}
        return tuple(last[question] for question in self.questions[:_EXAMPLES])

    @property
    def others(self) -> int:
        """The number of wordings beside the examples."""
        return max(0, len(self.questions) - _EXAMPLES)


def wordings(asked: Sequence[Unanswered]) -> list[str]:
    """Each question once, in alphabetical order; those that differ in case and spaces alone count as one."""
    return sorted({_folded(one.question) for one in asked})


def gaps(
    asked: Sequence[Unanswered],
    vectors: npt.NDArray[np.float32],
    least_likeness: float = LEAST_LIKENESS,
) -> list[Gap]:
    """The gaps, largest first, those of equal size by their most typical question; every question in exactly one.

    ``vectors`` are unit vectors, shape (len(wordings), dimension), in the order of :func:`wordings`. The order of
    ``asked`` does not matter. Empty without questions.
    """
    words = wordings(asked)
    times: dict[str, list[Unanswered]] = {}
    for one in asked:
        times.setdefault(_folded(one.question), []).append(one)
    found = []
    for members in clusters(vectors, least_likeness):
        typical = vectors[list(members)] @ vectors[list(members)].mean(axis=0)
        ranked = np.lexsort((members, -np.round(typical.astype(np.float64), 6)))
        central = [members[place] for place in ranked]
        inside = sorted(
            (one for index in members for one in times[words[index]]),
            key=lambda one: (one.asked_at, one.answer),
            reverse=True,
        )
        # As it was typed the last time, not folded.
        typed = [max(times[words[index]], key=lambda one: (one.asked_at, one.answer)).question for index in central]
        found.append(Gap(tuple(typed), tuple(inside)))
    return sorted(found, key=lambda gap: (-gap.size, gap.questions))


def clusters(vectors: npt.NDArray[np.float32], least_likeness: float) -> list[tuple[int, ...]]:
    """Groups of row numbers, each ascending, by their first; every row is in exactly one.

    Average linkage: the mean cosine between two groups that are joined is at least ``least_likeness``. Of equally alike
    pairs the one with the lowest rows is joined first, so the result is determined by the vectors and their order.

    Source: Sokal and Michener, "A Statistical Method for Evaluating Systematic Relationships", 1958 (UPGMA).
    """
    number = len(vectors)
    if number == 0:
        return []
    members: list[list[int]] = [[index] for index in range(number)]
    # Rounded, so that the order of sums inside the product of matrices decides no tie.
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


def _folded(question: str) -> str:
    return " ".join(question.split()).casefold()


# Each wording is embedded, and compared with each other one.
MOST_QUESTIONS = 500
_NEAREST_SQL = """
SELECT answer.id::text, (source -> 'document' ->> 'id')::bigint
  FROM chat_answer AS answer, jsonb_array_elements(answer.sources) AS source
 WHERE answer.id = ANY(%s::uuid[])
"""

MOST_GAPS = 30
KEPT_SECONDS = 900
# The answers of a gap whose sources are looked at.
_SAMPLE = 20


def unanswered(scope: DashboardScope) -> tuple[list[Unanswered], int]:
    """The latest questions without an answer or with one that did not help, at most 500, and how many there are in all.

    A question that was turned away unsearched, because it instructs the site, says nothing about the documents, and one
    that a draft was asked says nothing about those in service. One that a curator has settled since is no gap any more.
    """
    searched = scope.answers().exclude(search_method="")
    # Mostly there are none, and without the join the answers are read in the order of an index.
    if drafts := list(Collection.objects.filter(draft__isnull=False).values_list("pk", flat=True)):
        searched = searched.exclude(collection__in=drafts)
    searched = searched.exclude(approved__kind=ApprovedAnswer.Kind.OUT_OF_SCOPE)
    bad = searched.filter(Q(refused=True) | Q(feedback__helpful=False)).order_by("-completed_at", "pk")
    rows = bad.only("question", "completed_question", "joined_question", "completed_at")[:MOST_QUESTIONS]
    # A follow-up question says by itself nothing of what is missing.
    found = [
        Unanswered(str(row.pk), row.standing_alone, row.completed_at) for row in rows if row.completed_at is not None
    ]
    done = settled(one.question for one in found)
    found = [one for one in found if normalize(one.question) not in done]
    return found, len(found) if len(found) < MOST_QUESTIONS else bad.count()


def nearest_documents(
    answers: Sequence[Sequence[str]], in_service: QuerySet[Document], most: int = 3
) -> list[list[Document]]:
    """For each group of answers the documents found most often for them, those found equally often by id.

    Documents that are not ``in_service``, for the one who looks, are left out.
    """
    ids = sorted({pk for group in answers for pk in group})
    if not ids:
        return [[] for _group in answers]
    found: dict[str, set[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_SQL, [ids])
        for pk, document in cursor.fetchall():
            found.setdefault(pk, set()).add(document)
    documents = in_service.in_bulk({document for ids in found.values() for document in ids})
    nearest = []
    for group in answers:
        counted = Counter(document for pk in group for document in found.get(pk, ()) if document in documents)
        ranked = sorted(counted, key=lambda document: (-counted[document], document))
        nearest.append([documents[document] for document in ranked[:most]])
    return nearest


@dataclass(frozen=True, slots=True)
class GapReport:
    """The largest gaps. ``read`` of ``total`` unanswered questions were grouped, into ``groups``.

    ``error`` says why there are none although there are questions.
    """

    gaps: list[Gap] = field(default_factory=list)
    groups: int = 0
    read: int = 0
    total: int = 0
    found_at: datetime | None = None
    error: str = ""


def find_gaps(scope: DashboardScope) -> GapReport:
    """The gaps of the scope; they are kept for 15 minutes, or until another question stays unanswered.

    An embedder that does not answer is announced in the log and in the result.
    """
    asked, total = unanswered(scope)
    if not asked:
        return GapReport()
    name = conf.embedder().name
    # What is kept for one viewer may name what another may not read.
    whose = ""
    if scope.viewer is not None:
        rights = rights_of(scope.viewer)
        whose = f"{rights}:{narrowing_key(rights.collections, rights.readers)}"
    newest = f"{total}:{asked[0].answer}"
    key = f"gaps:{scope.days}:{scope.collection and scope.collection.pk}:{newest}:{name}:{whose}"
    key = hashlib.sha256(key.encode()).hexdigest()  # names of models hold characters that cache keys may not
    kept: GapReport | None = caches["process"].get(key)
    if kept is not None:
        return kept
    words = wordings(asked)
    try:
        vectors = conf.embedder().embed_documents(words)
    except RetrievalError as error:
        logger.warning("Unanswered questions are not grouped, because the embedder does not answer: %s", error)
        return GapReport(read=len(asked), total=total, error=str(error))
    least_likeness = (current_calibration() or MINILM).cosine_of_likeness(LEAST_LIKENESS)
    grouped = gaps(asked, vectors, least_likeness)
    shown = grouped[:MOST_GAPS]
    near = nearest_documents([[one.answer for one in gap.asked[:_SAMPLE]] for gap in shown], scope.documents())
    found = GapReport(
        [replace(gap, documents=tuple(documents)) for gap, documents in zip(shown, near, strict=True)],
        len(grouped),
        len(asked),
        total,
        timezone.now(),
    )
    caches["process"].set(key, found, KEPT_SECONDS)
    return found
