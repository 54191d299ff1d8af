"""Present rights: who may read an answer's text now, and who may act on it.

An answer is read with the rights of the moment of reading, not with those of the moment of asking.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from chat.models import Answer
from retrieval.access import is_staff_with
from retrieval.models import Collection, Document

# In the place of a collection that is not known any more. Nobody may read it.
UNKNOWN_COLLECTION = 0


def withheld_message() -> str:
    return _("This answer came from documents that you may no longer read.")


def may_read_all(user: Any) -> bool:
    """Whether ``user`` may read everybody's answers: staff with the permission to view answers."""
    return is_staff_with(user, "chat.view_answer")


def may_act_on_all(user: Any) -> bool:
    """Whether ``user`` may stop the answers of others: staff with the permission to change answers."""
    return is_staff_with(user, "chat.change_answer")


def readable_collections(user: Any) -> frozenset[int]:
    return frozenset(Collection.objects.readable_by(user).values_list("pk", flat=True))


def collections_of(sources: Iterable[dict[str, Any]]) -> frozenset[int]:
    """The collections that the sources (as saved with an answer) lie in now."""
    documents = _documents(sources)
    collections = dict(Document.objects.filter(pk__in=documents).values_list("pk", "collection"))
    return frozenset(collections.get(document, UNKNOWN_COLLECTION) for document in documents)


def withheld_from(user: Any, answers: Iterable[Answer]) -> frozenset[uuid.UUID]:
    """Ids of those answers whose text rests on a collection that ``user`` may not read.

    A deleted collection is read by nobody but those who may read all answers. Two queries, however many answers.
    """
    listed = list(answers)
    if not listed or may_read_all(user):
        return frozenset()
    readable = readable_collections(user)
    documents = {answer.pk: _documents(answer.sources) for answer in listed}
    # By the documents too: one may have been moved to another collection since.
    behind = Document.objects.filter(pk__in=frozenset().union(*documents.values()))
    closed = set(behind.exclude(collection__in=readable).values_list("pk", flat=True))
    return frozenset(
        answer.pk
        for answer in listed
        if not readable.issuperset(answer.source_collections) or not closed.isdisjoint(documents[answer.pk])
    )


def is_withheld(user: Any, answer: Answer) -> bool:
    return bool(withheld_from(user, [answer]))


def _documents(sources: Iterable[dict[str, Any]]) -> frozenset[int]:
    return frozenset(source["document"]["id"] for source in sources)
