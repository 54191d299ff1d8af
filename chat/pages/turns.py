"""A question and its answer as the page shows them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.answering.approved_answers import approval_of
from chat.answering.citations import find_markers, remove_markers
from chat.answering.filtered_stream import find_addresses
from chat.models import Answer, Feedback
from chat.pages.cards import Cited, NearCard, SourceCard, approved_line, build_cited, near_cards, plain, source_cards
from chat.pages.rendering import Doubt, add_doubt_remarks, count_checked, doubts
from chat.types import Choice
from retrieval.models import Collection as DocumentCollection

# Below this probability that the sources answer the question, the reader of an answer is told to check them.
LOW_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A question and its answer.

    ``completed_question`` is the question as it was searched, empty if it was searched as asked; ``is_joined`` is true
    if it was also searched together with the question before it. ``checked`` counts the sentences that were checked
    against the sources, ``doubts`` are those that failed. ``repeated_from`` is when the answer was first given; None if
    it was made for this question. ``approved`` says who approved it; mostly empty. ``unfolded`` opens the form that
    asks for the reason; with a ``feedback_error``, ``reason`` and ``comment`` are the rejected values. ``was_searched``
    is false for a question that was refused without a search. ``addresses`` occur in a source that the answer cites, so
    it may link them. ``near`` are places close to a question without an answer, ``choices`` questions to ask instead,
    ``follow_ups`` questions to ask next. ``writer`` wrote the answer, ``models`` are the language models that can
    answer it anew; empty without a choice. ``is_narrow`` is true for a refusal after a search in only some of the
    documents.
    """

    id: uuid.UUID
    conversation: uuid.UUID
    question: str
    status: str
    text: str = ""
    refused: bool = False
    near: tuple[NearCard, ...] = ()
    choices: tuple[Choice, ...] = ()
    follow_ups: tuple[str, ...] = ()
    is_narrow: bool = False
    error: str = ""
    notices: tuple[str, ...] = ()
    citations: tuple[Cited, ...] = ()
    sources: tuple[SourceCard, ...] = ()
    completed_question: str = ""
    is_joined: bool = False
    confidence: float | None = None
    doubts: tuple[Doubt, ...] = ()
    checked: int = 0
    repeated_from: datetime | None = None
    approved: str = ""
    helpful: bool | None = None
    reason: str = ""
    comment: str = ""
    feedback_error: str = ""
    waited_seconds: int = 0
    debug: bool = False
    unfolded: bool = False
    is_withheld: bool = False
    was_searched: bool = True
    addresses: tuple[str, ...] = ()
    writer: str = ""
    models: Sequence[str] = ()

    @property
    def is_open(self) -> bool:
        return self.status in (Answer.Status.PENDING, Answer.Status.GENERATING)

    @property
    def is_failed(self) -> bool:
        return self.status == Answer.Status.FAILED

    @property
    def is_stopped(self) -> bool:
        return self.status == Answer.Status.STOPPED

    @property
    def links(self) -> tuple[Cited, ...]:
        """The targets of the answer's markers: the citations; in a stopped answer, whose citations were not checked,
        the whole sources.
        """
        if not self.is_stopped:
            return self.citations
        return tuple(
            Cited(
                source.marker, source.href, source.title, source.section, source.page, source.page_unit, source.excerpt
            )
            for source in self.sources
        )

    @property
    def cited_sources(self) -> tuple[SourceCard, ...]:
        return tuple(source for source in self.sources if source.quotes)

    @property
    def other_sources(self) -> tuple[SourceCard, ...]:
        return tuple(source for source in self.sources if not source.quotes)

    @property
    def is_loosely_supported(self) -> bool:
        """Whether the sources may not answer the question although an answer was found in them."""
        return not self.refused and self.confidence is not None and self.confidence < LOW_CONFIDENCE

    @property
    def doubt_summary(self) -> str:
        """The sentence about unsupported parts of the answer; empty if there are none."""
        if not self.doubts:
            return ""
        if self.checked == 1:
            return _("This answer is not supported by the sources.")
        summary = ngettext(
            "%(doubted)d of %(checked)d sentences is not supported by the sources.",
            "%(doubted)d of %(checked)d sentences are not supported by the sources.",
            len(self.doubts),
        )
        return summary % {"doubted": len(self.doubts), "checked": self.checked}

    @property
    def feedback_reason(self) -> str:
        """The reason of a bad verdict, in words."""
        return str(Feedback.Reason(self.reason).label) if self.reason else ""

    @property
    def copy_text(self) -> str:
        """The answer with its sources, as plain text."""
        sources = (
            f"[{each.marker}] {', '.join(filter(None, (each.title, each.where)))}" for each in self.cited_sources
        )
        return "\n".join([add_doubt_remarks(self.text, self.doubts).strip(), "", *sources]).rstrip()

    @property
    def spoken_text(self) -> str:
        """The answer as a screen reader should say it once: without marks."""
        return " ".join(filter(None, [self.doubt_summary, plain(remove_markers(self.text))]))


def build_turn(answer: Answer, *, debug: bool = False, unfolded: bool = False, models: Sequence[str] = ()) -> ShownTurn:
    """The turn as saved. Reads the citations, the feedback and the answer that this one repeats."""
    citations = () if answer.status == Answer.Status.PENDING else tuple(map(build_cited, answer.citations.all()))
    feedback = getattr(answer, "feedback", None)
    approval = approval_of(answer.approved)
    return ShownTurn(
        id=answer.pk,
        conversation=answer.conversation_id,
        question=answer.question,
        status=answer.status,
        text=answer.text,
        refused=answer.refused,
        near=near_cards(answer.near) if answer.refused else (),
        choices=tuple(Choice(**offered) for offered in answer.choices),
        is_narrow=answer.refused and not approval and _is_narrow(answer),
        error=answer.error,
        notices=notices(answer.degraded, answer.notice),
        citations=citations,
        sources=source_cards(answer.sources, citations),
        completed_question=answer.completed_question,
        is_joined=bool(answer.joined_question),
        confidence=answer.confidence,
        doubts=doubts(answer.statements),
        checked=count_checked(answer.statements),
        approved=approved_line(approval.by, approval.on) if approval else "",
        repeated_from=answer.repeats.completed_at if answer.repeats else None,
        helpful=feedback.helpful if feedback else None,
        reason=feedback.reason if feedback else "",
        comment=feedback.comment if feedback else "",
        waited_seconds=int((timezone.now() - answer.created_at).total_seconds()),
        debug=debug,
        unfolded=unfolded,
        writer=answer.generator,
        models=models,
        was_searched=bool(answer.search_method),
        addresses=_addresses(answer.sources, {marker.number for marker in find_markers(answer.text)}),
    )


def _is_narrow(answer: Answer) -> bool:
    if answer.collection is None:
        return False
    others = DocumentCollection.objects.in_service().exclude(pk=answer.collection.pk)
    return answer.document_id is not None or others.exists()


def _addresses(sources: Iterable[Mapping[str, Any]], named: Collection[int]) -> tuple[str, ...]:
    """The addresses in the sources of these markers, and those of their documents."""
    cited = [source for source in sources if source["marker"] in named]
    addresses = [address for source in cited for address in find_addresses(source["content"])]
    return tuple(dict.fromkeys(filter(None, [*addresses, *(source["document"]["url"] for source in cited)])))


def build_withheld_turn(answer: Answer, question: str = "") -> ShownTurn:
    """The question alone, or ``question`` instead of it: the answer quotes documents that the reader may not read."""
    return ShownTurn(answer.pk, answer.conversation_id, question or answer.question, answer.status, is_withheld=True)


def with_refused_feedback(turn: ShownTurn, error: str, *, reason: str, comment: str) -> ShownTurn:
    """The turn with the reader's rejected feedback, to be corrected, instead of the saved one; ``reason`` is empty or
    valid.
    """
    return replace(turn, reason=reason, comment=comment, feedback_error=error, unfolded=True)


def failed_turn(turn: ShownTurn, payload: Mapping[str, Any]) -> ShownTurn:
    return replace(turn, status=Answer.Status.FAILED.value, error=payload["message"])


def notices(degraded: Iterable[str], notice: str = "") -> tuple[str, ...]:
    """Notices to the reader about fallbacks and limits of this answer."""
    sentences = {
        "vector": _("Search by meaning did not answer, so the passages were found by their words alone."),
        "lexical": _("Keyword search did not answer, so the passages were found by their meaning alone."),
        "rerank": _("The reranker did not answer, so the passages are in the order of the search."),
        "unencoded": _("Documents that were added just now are found by their words alone for a while."),
    }
    said = [
        sentences.get(retriever) or _("Part of the search did not answer: %s.") % retriever for retriever in degraded
    ]
    return tuple([*said, notice] if notice else said)
