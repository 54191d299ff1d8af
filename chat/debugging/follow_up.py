"""Links from an answer to its trace and to the documents it came from, for correcting it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse

from chat.models import Answer, Citation
from retrieval.models import Document

MOST_CANDIDATES = 3


@dataclass(frozen=True, slots=True)
class DocumentBehind:
    """A document behind an answer: cited by it, or only among its sources."""

    id: int
    title: str
    cited: bool

    @property
    def address(self) -> str:
        return reverse("admin:retrieval_document_change", args=[self.id])


def documents_behind(answers: Iterable[Answer]) -> dict[UUID, list[DocumentBehind]]:
    """For each answer the documents it cites, in the order of its markers, then up to three others among its sources.

    Deleted documents are left out. Needs two queries for any number of answers.
    """
    listed = list(answers)
    # By answer and document: whether it is cited.
    behind: dict[UUID, dict[int, bool]] = {answer.pk: {} for answer in listed}
    cited = Citation.objects.filter(answer__in=list(behind), document__isnull=False).order_by("marker", "pk")
    for answer_id, document_id in cited.values_list("answer_id", "document_id"):
        behind[answer_id][document_id] = True
    for answer in listed:
        found = dict.fromkeys(source["document"]["id"] for source in answer.sources)
        others = [pk for pk in found if pk not in behind[answer.pk]]
        behind[answer.pk] |= dict.fromkeys(others[:MOST_CANDIDATES], False)
    wanted = {pk for documents in behind.values() for pk in documents}
    titles = {document.pk: str(document) for document in Document.objects.filter(pk__in=wanted).only("title", "source")}
    return {
        answer_id: [DocumentBehind(pk, titles[pk], is_cited) for pk, is_cited in documents.items() if pk in titles]
        for answer_id, documents in behind.items()
    }
