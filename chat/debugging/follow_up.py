"""What explains an answer and lets it be corrected: its trace, and the documents it came from."""

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
    """A document that an answer was made from: it cites it, or it only had it among its sources."""

    id: int
    title: str
    cited: bool

    @property
    def address(self) -> str:
        return reverse("admin:retrieval_document_change", args=[self.id])


def trace_address(answer: Answer) -> str:
    """The answer's debug panel, on a page of its own."""
    return reverse("chat:debug", args=[answer.pk])


def documents_behind(answers: Iterable[Answer]) -> dict[UUID, list[DocumentBehind]]:
    """For each answer the documents it cites, in the order of its markers, then up to three others among its sources.

    Documents that are gone are left out. Two queries, however many answers.
    """
    listed = list(answers)
    cited: dict[UUID, list[int]] = {answer.pk: [] for answer in listed}
    rows = Citation.objects.filter(answer__in=[answer.pk for answer in listed], document__isnull=False)
    for answer_id, document_id in rows.order_by("marker", "pk").values_list("answer_id", "document_id"):
        if document_id not in cited[answer_id]:
            cited[answer_id].append(document_id)
    others = {answer.pk: _others(answer, cited[answer.pk]) for answer in listed}
    wanted = {pk for found in (*cited.values(), *others.values()) for pk in found}
    titles = {document.pk: str(document) for document in Document.objects.filter(pk__in=wanted).only("title", "source")}
    return {
        answer.pk: [
            DocumentBehind(pk, titles[pk], is_cited)
            for found, is_cited in ((cited[answer.pk], True), (others[answer.pk], False))
            for pk in found
            if pk in titles
        ]
        for answer in listed
    }


def _others(answer: Answer, cited: list[int]) -> list[int]:
    found = dict.fromkeys(source["document"]["id"] for source in answer.sources)
    return [pk for pk in found if pk not in cited][:MOST_CANDIDATES]
