from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import prefetch_related_objects
from django.urls import reverse

from chat.models import Answer
from retrieval.models import Document

MOST_CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class UsedDocument:
    """A document that an answer uses. If ``cited`` is false, it is a source without a citation."""

    id: int
    title: str
    cited: bool

    @property
    def address(self) -> str:
        return reverse("admin:retrieval_document_change", args=[self.id])


def list_answer_documents(answers: Iterable[Answer]) -> dict[UUID, list[UsedDocument]]:
    """Return the documents of each answer: the cited ones, then at most three other sources."""
    listed = list(answers)
    prefetch_related_objects(listed, "citations")
    behind: dict[UUID, dict[int, bool]] = {}
    for answer in listed:
        cited = dict.fromkeys((each.document_id for each in answer.citations.all() if each.document_id), True)
        found = dict.fromkeys(source["document"]["id"] for source in answer.sources)
        others = [pk for pk in found if pk not in cited][:MOST_CANDIDATES]
        behind[answer.pk] = cited | dict.fromkeys(others, False)
    titles = Document.objects.only("title", "source").in_bulk({pk for found in behind.values() for pk in found})
    return {
        answer_id: [UsedDocument(pk, str(titles[pk]), is_cited) for pk, is_cited in found.items() if pk in titles]
        for answer_id, found in behind.items()
    }
