"""A question and its answer as the page shows them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse
from django.utils.text import Truncator
from django.utils.translation import gettext as _

from chat.citations import MARKER
from chat.models import Answer, Citation

_EXCERPT_CHARACTERS = 260
_PREVIEW_CHARACTERS = 420
_SIGNS = (
    (re.compile(r"^[ \t]*(?:```.*|\|?[ \t:|-]*--[ \t:|-]*)$", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*\|[ \t]*|[ \t]*\|[ \t]*$", re.MULTILINE), ""),
    (re.compile(r"[ \t]+\|[ \t]+"), " · "),
    (re.compile(r"(\*\*|`)(?=\S)([^\n]+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
)


@dataclass(frozen=True, slots=True)
class Cited:
    """A verified citation. ``href`` is empty when its document is gone; the words remain."""

    marker: int
    href: str
    title: str
    section: str
    page: int | None
    quote: str
    support: float | None = None

    @property
    def where(self) -> str:
        return place(self.section, self.page)

    @property
    def preview(self) -> str:
        return Truncator(plain(self.quote)).chars(_PREVIEW_CHARACTERS)

    @property
    def name(self) -> str:
        """What a screen reader says of the marker."""
        page = f", {page_label(self.page)}" if self.page else ""
        return _("Source %(marker)d: %(title)s") % {"marker": self.marker, "title": self.title} + page

    @property
    def support_in_words(self) -> str:
        if self.support is None:
            return ""
        return _("Supports the sentence: %(percent)d %%") % {"percent": round(100 * self.support)}


@dataclass(frozen=True, slots=True)
class SourceCard:
    """A numbered source beside the answer."""

    marker: int
    href: str
    title: str
    section: str
    page: int | None
    excerpt: str
    quotes: tuple[Cited, ...] = ()

    @property
    def where(self) -> str:
        return place(self.section, self.page)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and what became of it."""

    id: uuid.UUID
    conversation: uuid.UUID
    question: str
    status: str
    text: str
    refused: bool
    error: str
    notices: tuple[str, ...]
    citations: tuple[Cited, ...]
    sources: tuple[SourceCard, ...]
    helpful: bool | None = None
    debug: bool = False

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
        """What the answer's markers lead to: the citations; in a stopped answer, whose citations nobody checked, the
        sources as a whole."""
        if not self.is_stopped:
            return self.citations
        return tuple(
            Cited(source.marker, source.href, source.title, source.section, source.page, source.excerpt)
            for source in self.sources
        )

    @property
    def cited_sources(self) -> tuple[SourceCard, ...]:
        return tuple(source for source in self.sources if source.quotes)

    @property
    def other_sources(self) -> tuple[SourceCard, ...]:
        return tuple(source for source in self.sources if not source.quotes)

    @property
    def copy_text(self) -> str:
        """The answer with its sources, as plain text."""
        lines = [self.text.strip()]
        for source in self.cited_sources:
            lines.append(f"[{source.marker}] " + ", ".join(part for part in (source.title, source.where) if part))
        return "\n".join([lines[0], "", *lines[1:]] if lines[1:] else lines)

    @property
    def spoken_text(self) -> str:
        """The answer as a screen reader should say it once: without marks."""
        return plain(MARKER.sub("", self.text))


def turn_of(answer: Answer, *, debug: bool = False) -> Turn:
    """The turn as it is saved. Reads the citations."""
    citations = () if answer.status == Answer.Status.PENDING else tuple(map(_saved, answer.citations.all()))
    return Turn(
        id=answer.pk,
        conversation=answer.conversation_id,
        question=answer.question,
        status=answer.status,
        text=answer.text,
        refused=answer.refused,
        error=answer.error,
        notices=notices(answer.degraded, answer.notice),
        citations=citations,
        sources=source_cards(answer.sources, citations),
        helpful=getattr(getattr(answer, "feedback", None), "helpful", None),
        debug=debug,
    )


def failed_turn(turn: Turn, payload: Mapping[str, Any]) -> Turn:
    return replace(turn, status=Answer.Status.FAILED.value, error=payload["message"])


def source_cards(sources: Iterable[Mapping[str, Any]], citations: Iterable[Cited] = ()) -> tuple[SourceCard, ...]:
    """Source cards from the payload of `searched`, each with what was cited of it."""
    quotes: dict[int, dict[tuple[str, str], Cited]] = {}
    for cited in citations:
        quotes.setdefault(cited.marker, {}).setdefault((cited.href, cited.quote), cited)
    return tuple(
        SourceCard(
            marker=source["marker"],
            href=passage_url(source["document"]["id"], source["start"], source["end"]),
            title=source["document"]["title"],
            section=source["section"],
            page=source["page"],
            excerpt=Truncator(plain(source["content"])).chars(_EXCERPT_CHARACTERS),
            quotes=tuple(quotes.get(source["marker"], {}).values()),
        )
        for source in sources
    )


def notices(degraded: Iterable[str], notice: str = "") -> tuple[str, ...]:
    """What the reader should know of how the answer came about."""
    sentences = {
        "vector": _("Search by meaning did not answer, so the passages were found by their words alone."),
        "lexical": _("Keyword search did not answer, so the passages were found by their meaning alone."),
        "rerank": _("The passages could not be looked at a second time; their order is that of the first look."),
    }
    said = [sentences.get(leg) or _("A part of the search did not answer: %s.") % leg for leg in degraded]
    return tuple([*said, notice] if notice else said)


def passage_url(document_id: int | None, start: int, end: int) -> str:
    """Where the words ``[start:end]`` of a document can be read in their place; empty without a document."""
    if document_id is None:
        return ""
    return f"{reverse('retrieval:document', args=[document_id])}?start={start}&end={end}#passage"


def page_label(page: int) -> str:
    return (_("page %(page)d") % {"page": page}).replace(" ", "\u00a0")


def place(section: str, page: int | None) -> str:
    return " · ".join(part for part in (section, page_label(page) if page else "") if part)


def plain(text: str) -> str:
    """The words of Markdown on one line: without the signs of headings, emphasis, code and tables."""
    for pattern, replacement in _SIGNS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def _saved(citation: Citation) -> Cited:
    return Cited(
        marker=citation.marker,
        href=passage_url(citation.document_id, citation.start, citation.end),
        title=citation.document_title,
        section=citation.section,
        page=citation.page,
        quote=citation.quote,
        support=citation.support,
    )
