"""The questions that were not answered well, and the documents that came nearest to an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from django.db import connection
from django.db.models import Q

from evaluation.dashboard.clusters import Unanswered
from evaluation.dashboard.scope import Scope
from retrieval.models import Document

# Each wording is embedded, and compared with each other one.
MOST_QUESTIONS = 500
_NEAREST_SQL = """
SELECT answer.id::text, (source -> 'document' ->> 'id')::bigint
  FROM chat_answer AS answer, jsonb_array_elements(answer.sources) AS source
 WHERE answer.id = ANY(%s::uuid[])
"""


def unanswered(scope: Scope) -> tuple[list[Unanswered], int]:
    """The latest questions that got no answer from the documents or one that did not help, and how many there are in
    all: at most 500 are read.

    A question that was turned away unsearched, because it instructs the site, says nothing about the documents, and one
    that a draft was asked says nothing about those in service.
    """
    searched = scope.answers().filter(conversation__collection__draft=None).exclude(search_method="")
    bad = searched.filter(Q(refused=True) | Q(feedback__helpful=False)).order_by("-completed_at", "pk")
    rows = bad.values_list("pk", "question", "completed_question", "completed_at")[:MOST_QUESTIONS]
    # A follow-up question says by itself nothing of what is missing.
    found = [Unanswered(str(pk), completed or question, at) for pk, question, completed, at in rows if at is not None]
    return found, len(found) if len(found) < MOST_QUESTIONS else bad.count()


def nearest_documents(answers: Sequence[Sequence[str]], most: int = 3) -> list[list[Document]]:
    """For each group of answers the documents found most often for them, those found equally often by id.

    Documents that are gone, or only in a draft, are left out.
    """
    ids = sorted({pk for group in answers for pk in group})
    if not ids:
        return [[] for _group in answers]
    found: dict[str, set[int]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_SQL, [ids])
        for pk, document in cursor.fetchall():
            found.setdefault(pk, set()).add(document)
    in_service = Document.objects.filter(collection__draft=None)
    documents = in_service.in_bulk({document for held in found.values() for document in held})
    nearest = []
    for group in answers:
        counted = Counter(document for pk in group for document in found.get(pk, ()) if document in documents)
        ranked = sorted(counted, key=lambda document: (-counted[document], document))
        nearest.append([documents[document] for document in ranked[:most]])
    return nearest
