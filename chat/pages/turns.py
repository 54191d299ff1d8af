from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import ClassVar

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.answering.approved_answers import get_approval
from chat.answering.checking.addresses import find_addresses
from chat.answering.checking.citations import CitationMarker, find_markers, remove_markers
from chat.answering.extractive import NAME as EXTRACTIVE
from chat.models import Answer, Citation, Feedback
from chat.pages.answer_text import describe_approval, has_table_rows
from chat.pages.cards import (
    CitedPassage,
    ResultCard,
    SourceCard,
    build_cited_passage,
    build_result_cards,
    build_source_cards,
)
from chat.pages.changes import PassageChange, list_distinct_changes
from chat.pages.doubts import DoubtfulRange, add_doubt_remarks, count_checked_statements, find_doubtful_ranges
from chat.pages.filters import build_filter_chips
from chat.pages.plain_text import convert_to_plain_text
from core.user_types import AnyUser
from retrieval.exceptions import InvalidQuery
from retrieval.models import Collection as DocumentCollection
from retrieval.rights.chosen_filters import FilterChip
from retrieval.rights.search_filters import list_matching_documents

LOW_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A question and its answer on a page.

    - ``id``: the answer's id; on a shared page, another unique id.
    - ``is_withheld``: only the question is shown.
    - ``is_narrow``: some documents were not searched.
    - ``passes_nothing``: the filters exclude all documents.
    - ``models``: language models with which the user can ask again.
    - ``changes``: cited passages that have changed.
    - ``last_read``: when the site read the cited documents (the oldest reading); None if a cited passage has changed.
    - ``followed``: whether the reader gets mails about changes; None if impossible.
    """

    id: uuid.UUID
    answer: Answer
    citations: tuple[CitedPassage, ...] = ()
    sources: tuple[SourceCard, ...] = ()
    results: tuple[ResultCard, ...] = ()
    doubts: tuple[DoubtfulRange, ...] = ()
    follow_ups: tuple[str, ...] = ()
    approved: str = ""
    filters: tuple[FilterChip, ...] = ()
    is_narrow: bool = False
    passes_nothing: bool = False
    helpful: bool | None = None
    reason: str = ""
    comment: str = ""
    debug: bool = False
    may_correct_answers: bool = False
    is_withheld: bool = False
    models: Sequence[str] = ()
    changes: tuple[PassageChange, ...] = ()
    last_read: datetime | None = None
    followed: bool | None = None
    reasons: ClassVar = Feedback.Reason.choices

    @property
    def is_failed(self) -> bool:
        return self.answer.status == Answer.Status.FAILED

    @property
    def is_stopped(self) -> bool:
        return self.answer.status == Answer.Status.STOPPED

    @property
    def notices(self) -> tuple[str, ...]:
        return describe_failed_parts(self.answer.degraded)

    @property
    def waited_seconds(self) -> int:
        return int((timezone.now() - self.answer.created_at).total_seconds())

    @property
    def links(self) -> tuple[CitedPassage, ...]:
        """The passages to which markers link: citations, or the unchecked sources of a stopped answer."""
        if not self.is_stopped:
            return self.citations
        return tuple(
            CitedPassage(
                source.marker, source.href, source.title, source.section, source.page, source.page_unit, source.excerpt
            )
            for source in self.sources
        )

    @property
    def linkable_addresses(self) -> tuple[str, ...]:
        """The addresses that may become links: the addresses of cited documents, and those in the cited texts."""
        # A stopped answer has markers but no citations.
        named = {cited.marker for cited in self.citations} or {each.number for each in find_markers(self.answer.text)}
        cited = [source for source in self.answer.sources if source["marker"] in named]
        addresses = [address for source in cited for address in find_addresses(source["content"])]
        return tuple(dict.fromkeys(filter(None, [*addresses, *(source["document"]["url"] for source in cited)])))

    @property
    def may_differ_when_repeated(self) -> bool:
        is_written = self.answer.generator not in ("", EXTRACTIVE)
        return is_written or bool(self.models) or bool(self.notices or self.answer.notice)

    @property
    def quoted_passage(self) -> CitedPassage | None:
        is_quoted = self.answer.generator == EXTRACTIVE and not self.answer.refused and not self.answer.computed
        return self.citations[0] if is_quoted and self.citations else None

    @property
    def has_rows(self) -> bool:
        return has_table_rows(self.answer.text)

    @property
    def cited_sources(self) -> tuple[SourceCard, ...]:
        return tuple(source for source in self.sources if source.quotes)

    @property
    def other_sources(self) -> tuple[SourceCard, ...]:
        shown = {result.chunk_id for result in self.results}
        return tuple(source for source in self.sources if not source.quotes and source.chunk_id not in shown)

    @property
    def is_loosely_supported(self) -> bool:
        confidence = self.answer.confidence
        return not self.answer.refused and confidence is not None and confidence < LOW_CONFIDENCE

    @property
    def doubt_summary(self) -> str:
        if not self.doubts:
            return ""
        checked = count_checked_statements(self.answer.statements)
        if checked == 1:
            return _("This answer is not supported by the sources.")
        summary = ngettext(
            "%(doubted)d of %(checked)d sentences is not supported by the sources.",
            "%(doubted)d of %(checked)d sentences are not supported by the sources.",
            len(self.doubts),
        )
        return summary % {"doubted": len(self.doubts), "checked": checked}

    @property
    def text_to_copy(self) -> str:
        sources = (
            f"[{each.marker}] {', '.join(filter(None, (each.title, each.where)))}" for each in self.cited_sources
        )
        return "\n".join([add_doubt_remarks(self.answer.text, self.doubts).strip(), "", *sources]).rstrip()

    @property
    def spoken_text(self) -> str:
        at = [(cited.marker, cited.marker_start) for cited in self.citations if cited.marker_start is not None]
        markers = [
            CitationMarker(number, start, start + len(f"[{number}]")) for number, start in sorted(at, key=itemgetter(1))
        ]
        text = remove_markers(self.answer.text, markers or None)
        return " ".join(filter(None, [self.doubt_summary, convert_to_plain_text(text)]))


def build_turn(
    answer: Answer,
    *,
    debug: bool = False,
    may_correct_answers: bool = False,
    models: Sequence[str] = (),
    viewer: AnyUser | None = None,
    changes: Mapping[int, PassageChange] | None = None,
    followed: bool | None = None,
) -> ShownTurn:
    """Return a stored question and answer in the form that the template needs.

    ``viewer`` is the reader if this is not the asker, else None. ``changes`` maps citation ids to passages that changed
    after the answer; None means that this was not checked.
    """
    rows = () if answer.status == Answer.Status.PENDING else answer.citations.all()
    changed = list_distinct_changes(changes or {}, rows)
    citations = tuple(build_cited_passage(row, (changes or {}).get(row.pk)) for row in rows)
    feedback = getattr(answer, "feedback", None)
    approval = get_approval(answer.approved)
    return ShownTurn(
        id=answer.pk,
        answer=answer,
        citations=citations,
        sources=build_source_cards(answer.sources, citations),
        results=build_result_cards(answer.alternatives),
        doubts=find_doubtful_ranges(answer.statements),
        approved=describe_approval(approval.by, approval.on) if approval else "",
        filters=build_filter_chips(answer, viewer),
        passes_nothing=answer.refused and viewer is None and _has_empty_filter_result(answer),
        is_narrow=answer.refused and not approval and _is_limited_to_some_documents(answer),
        helpful=feedback.helpful if feedback else None,
        reason=feedback.reason if feedback else "",
        comment=feedback.comment if feedback else "",
        debug=debug,
        may_correct_answers=may_correct_answers,
        models=models,
        changes=changed,
        last_read=None if changed or changes is None else _find_earliest_ingestion(rows),
        followed=followed if rows else None,
    )


def _is_limited_to_some_documents(answer: Answer) -> bool:
    if answer.collection is None:
        return False
    others = DocumentCollection.objects.in_service().exclude(pk=answer.collection.pk)
    return answer.document_id is not None or others.exists()


def _has_empty_filter_result(answer: Answer) -> bool:
    if not answer.asked_filters:
        return False
    try:
        return not list_matching_documents(answer.build_search_filters()).exists()
    except InvalidQuery:
        return False


def _find_earliest_ingestion(citations: Iterable[Citation]) -> datetime | None:
    documents = [citation.document for citation in citations]
    read = [document.ingested_at for document in documents if document is not None and document.ingested_at is not None]
    return min(read) if documents and len(read) == len(documents) else None


def build_withheld_turn(answer: Answer, question: str = "") -> ShownTurn:
    """Return the answer's question (or the text ``question``) for a reader who may not read the answer."""
    bare = Answer(
        pk=answer.pk,
        conversation_id=answer.conversation_id,
        question=question or answer.question,
        status=answer.status,
        created_at=answer.created_at,
    )
    return ShownTurn(answer.pk, bare, is_withheld=True)


def describe_failed_parts(degraded: Iterable[str]) -> tuple[str, ...]:
    sentences = {
        "vector": _("Search by meaning did not answer, so the passages were found by their words alone."),
        "lexical": _("Keyword search did not answer, so the passages were found by their meaning alone."),
        "rerank": _("The reranker did not answer, so the passages are in the order of the search."),
        "unencoded": _("Documents that were added just now are found by their words alone for a while."),
    }
    return tuple(
        sentences.get(retriever) or _("Part of the search did not answer: %s.") % retriever for retriever in degraded
    )
