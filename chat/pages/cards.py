from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.utils.text import Truncator
from django.utils.translation import gettext as _

from chat.models import Citation
from chat.pages.changes import PassageChange
from chat.pages.plain_text import convert_to_plain_text
from chat.payload_types import AlternativePassagePayload, SourcePayload
from chat.streaming.payloads import read_citation
from retrieval.documents.file_icons import choose_icon
from retrieval.passage_address import build_passage_url

_EXCERPT_CHARACTERS = 260
_PREVIEW_CHARACTERS = 420


@dataclass(frozen=True, slots=True)
class _LinkedPassage:
    """A passage of a document, to show with a link. ``href`` is empty if the document was deleted."""

    marker: int
    href: str
    title: str
    section: str
    page: int | None
    page_unit: str
    collection: str = field(default="", kw_only=True)

    @property
    def document(self) -> str:
        return ", ".join(filter(None, (self.title, self.collection)))

    @property
    def where(self) -> str:
        return describe_place(self.collection, self.section, self.page, self.page_unit)


@dataclass(frozen=True, slots=True)
class CitedPassage(_LinkedPassage):
    """A verified citation on a page. Its document may be deleted.

    ``marker_start`` is the offset of its marker (``[1]``); None means all markers with this number.
    """

    quote: str
    support: float | None = None
    marker_start: int | None = None
    verbatim: bool = False
    marked_start: int | None = None
    marked_end: int | None = None
    change: PassageChange | None = None

    @property
    def preview(self) -> str:
        return Truncator(convert_to_plain_text(self.quote)).chars(_PREVIEW_CHARACTERS)

    @property
    def name(self) -> str:
        page = f", {format_page_number(self.page, self.page_unit)}" if self.page else ""
        return _("Source %(marker)d: %(title)s") % {"marker": self.marker, "title": self.document} + page

    @property
    def support_description(self) -> str:
        if self.verbatim:
            return _("Quoted word for word")
        if self.support is None:
            return ""
        return _("Supports the sentence: %(percent)d %%") % {"percent": round(100 * self.support)}


@dataclass(frozen=True, slots=True)
class SourceCard(_LinkedPassage):
    excerpt: str
    chunk_id: int | None = None
    quotes: tuple[CitedPassage, ...] = ()
    icon: str = "page"

    @property
    def passage_change(self) -> PassageChange | None:
        return next((cited.change for cited in self.quotes if cited.change is not None), None)


@dataclass(frozen=True, slots=True)
class ResultCard:
    """A passage to show with an answer or instead of it. ``quote`` is what best matches the question."""

    chunk_id: int | None
    href: str
    title: str
    where: str
    text: str
    quote: str

    @property
    def snippet(self) -> str:
        return Truncator(convert_to_plain_text(self.quote)).chars(_EXCERPT_CHARACTERS)


def build_result_cards(alternatives: Iterable[AlternativePassagePayload]) -> tuple[ResultCard, ...]:
    return tuple(
        ResultCard(
            chunk_id=found.get("chunk_id"),
            href=build_passage_url(found["document"]["id"], found["start"], found["end"]),
            title=found["document"]["title"],
            where=describe_place(
                found.get("collection", ""), found["section"], found["page"], found.get("page_unit", "page")
            ),
            text=found.get("text") or found["quote"],
            quote=found["quote"],
        )
        for found in alternatives
    )


def build_source_cards(
    sources: Iterable[SourcePayload], citations: Iterable[CitedPassage] = ()
) -> tuple[SourceCard, ...]:
    quotes: dict[int, dict[tuple[str, str], CitedPassage]] = {}
    for cited in citations:
        quotes.setdefault(cited.marker, {}).setdefault((cited.href, cited.quote), cited)
    return tuple(_build_source_card(source, tuple(quotes.get(source["marker"], {}).values())) for source in sources)


def _build_source_card(source: SourcePayload, quotes: tuple[CitedPassage, ...]) -> SourceCard:
    return SourceCard(
        marker=source["marker"],
        href=build_passage_url(source["document"]["id"], source["start"], source["end"]),
        title=source["document"]["title"],
        section=quotes[0].section if quotes else source["section"],
        page=quotes[0].page if quotes else source["page"],
        page_unit=source.get("page_unit", "page"),
        excerpt=Truncator(convert_to_plain_text(source.get("snippet") or source["content"])).chars(_EXCERPT_CHARACTERS),
        chunk_id=source.get("chunk_id"),
        quotes=quotes,
        collection=source.get("collection", ""),
        icon=choose_icon(source["document"].get("media_type", "")),
    )


def format_page_number(page: int, unit: str) -> str:
    label = _("slide %(page)d") if unit == "slide" else _("page %(page)d")
    return (label % {"page": page}).replace(" ", "\u00a0")


def describe_place(collection: str, section: str, page: int | None, unit: str) -> str:
    return " · ".join(filter(None, (collection, section, format_page_number(page, unit) if page else "")))


def build_cited_passage(citation: Citation, change: PassageChange | None = None) -> CitedPassage:
    cited = read_citation(citation.answer, citation)
    return CitedPassage(
        marker=cited.marker,
        # The stored offsets are wrong in a changed document, so the link opens the changed passage.
        href=change.href if change else build_passage_url(cited.document.id, cited.start, cited.end),
        title=cited.document.title,
        section=cited.section,
        page=cited.page,
        page_unit=cited.page_unit,
        collection=cited.collection,
        quote=cited.quote,
        support=cited.support,
        marker_start=cited.marker_start,
        verbatim=cited.verbatim,
        marked_start=cited.marked_start,
        marked_end=cited.marked_end,
        change=change,
    )
