"""The gaps in the documents: questions that were not answered well, embedded and grouped."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.core.cache import caches
from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from chat.answering.approved_answers import settled
from chat.conversations.rights import rights_of
from chat.models import ApprovedAnswer
from evaluation.dashboard.clusters import LEAST_LIKENESS, Gap, Unanswered, gaps, wordings
from evaluation.dashboard.scope import DashboardScope
from retrieval import conf
from retrieval.exceptions import RetrievalError
from retrieval.index.closeness import MINILM, current_calibration
from retrieval.models import Collection, Document
from retrieval.rights import narrowing_key
from retrieval.text.questions import normalize

# Each wording is embedded, and compared with each other one.
MOST_QUESTIONS = 500
_NEAREST_SQL = """
SELECT answer.id::text, (source -> 'document' ->> 'id')::bigint
  FROM chat_answer AS answer, jsonb_array_elements(answer.sources) AS source
 WHERE answer.id = ANY(%s::uuid[])
"""

logger = logging.getLogger(__name__)
MOST_GAPS = 30
# So many questions are embedded while somebody waits for the dashboard; for more there is a page of its own.
AT_ONCE = 60
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
        searched = searched.exclude(conversation__collection__in=drafts)
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
class FoundGap:
    """A gap with the documents that were found most often for its questions."""

    gap: Gap
    documents: list[Document]


@dataclass(frozen=True, slots=True)
class GapReport:
    """The largest gaps. ``read`` of ``total`` unanswered questions were grouped, into ``groups``.

    ``error`` says why there are none although there are questions; ``is_left`` that grouping takes too long for now.
    """

    gaps: list[FoundGap] = field(default_factory=list)
    groups: int = 0
    read: int = 0
    total: int = 0
    found_at: datetime | None = None
    error: str = ""
    is_left: bool = False


def find_gaps(scope: DashboardScope, *, patiently: bool = True) -> GapReport:
    """The gaps of the scope; they are kept for 15 minutes, or until another question stays unanswered.

    Unless ``patiently``, many questions that were not grouped lately are left for the page that is. An embedder that
    does not answer is announced in the log and in the result.
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
    if not patiently and len(words) > AT_ONCE:
        return GapReport(read=len(asked), total=total, is_left=True)
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
        [FoundGap(gap, documents) for gap, documents in zip(shown, near, strict=True)],
        len(grouped),
        len(asked),
        total,
        timezone.now(),
    )
    caches["process"].set(key, found, KEPT_SECONDS)
    return found
