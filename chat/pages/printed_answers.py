from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chat.models import Answer, Citation
from chat.pages.cards import CitedPassage, describe_place
from chat.pages.rendering import render_answer
from chat.pages.turns import ShownTurn
from chat.streaming.payloads import read_citation
from core.user_types import AnyUser
from retrieval.models import Collection, Document
from retrieval.passage_address import build_passage_url

# A document's version is its SHA-256, shown with this many characters.
_VERSION_CHARACTERS = 12

BuildAddress = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Footnote:
    """A footnote of a printed answer. ``number`` is its marker, and ``quotes`` are the cited words of the source.

    ``address`` opens the passage on this site, ``url`` the original document.
    """

    number: int
    title: str
    where: str
    quotes: tuple[str, ...]
    version: str
    address: str
    url: str


@dataclass(frozen=True, slots=True)
class PrintedAnswer:
    """A question and its answer, ready to print. ``scope`` names the documents that were searched."""

    turn: ShownTurn
    scope: str = ""
    footnotes: tuple[Footnote, ...] = ()

    @property
    def body(self) -> SafeString:
        turn = self.turn
        links = [
            replace(cited, href=f"#note-{turn.id}-{cited.marker}", change=None)
            for cited in _list_footnoted_passages(turn)
        ]
        return render_answer(turn.answer.text, links, turn.doubts, turn.linkable_addresses)


def _list_footnoted_passages(turn: ShownTurn) -> tuple[CitedPassage, ...]:
    # A stopped answer gets no footnotes, because its markers were not checked.
    return () if turn.is_stopped else turn.citations


def build_printed_answers(
    turns: Sequence[ShownTurn], user: AnyUser, build_address: BuildAddress
) -> list[PrintedAnswer]:
    """Return the questions and answers, ready to print. ``build_address`` turns a path into a full address."""
    shown = [turn for turn in turns if not turn.is_withheld and turn.answer.is_finished]
    cited = [citation for turn in shown for citation in turn.answer.citations.all()]
    documents = Document.objects.select_related("text").defer("text__text", "text__sections", "text__pages")
    known = documents.in_bulk({citation.document_id for citation in cited} - {None})
    name_scope = _build_scope_namer([turn.answer for turn in shown], user)
    printed = []
    for turn in turns:
        if turn not in shown:
            printed.append(PrintedAnswer(turn))
            continue
        citations = () if turn.is_stopped else turn.answer.citations.all()
        notes = _build_footnotes(turn.answer, citations, known, build_address)
        filters = [f"{chip.label}: {chip.text}" for chip in turn.filters]
        printed.append(PrintedAnswer(turn, ", ".join([name_scope(turn.answer), *filters]), notes))
    return printed


def _build_scope_namer(answers: Iterable[Answer], user: AnyUser) -> Callable[[Answer], str]:
    """Return a function that names the documents searched for an answer, without names the user may not see."""
    listed = list(answers)
    collections = dict(Collection.objects.readable_by(user).values_list("pk", "name"))
    wanted = {answer.document_id for answer in listed} - {None}
    documents = Document.objects.readable_by(user).in_bulk(wanted) if wanted else {}

    def name_scope(answer: Answer) -> str:
        if (document := documents.get(answer.document_id or 0)) is not None:
            return _("the document “%s”") % document
        if answer.collection_id is None and answer.document_id is None:
            return _("all collections")
        collection = collections.get(answer.collection_id or 0)
        return _("the collection “%s”") % collection if collection else _("part of the documents")

    return name_scope


def _build_footnotes(
    answer: Answer, citations: Iterable[Citation], known: dict[int, Document], build_address: BuildAddress
) -> tuple[Footnote, ...]:
    markers: dict[int, list[Citation]] = {}
    for citation in citations:
        markers.setdefault(citation.marker, []).append(citation)
    notes = []
    for marker, cited in sorted(markers.items()):
        first = cited[0]
        source = read_citation(answer, first)
        address = build_passage_url(first.document_id, first.start, first.end)
        note = Footnote(
            number=marker,
            title=first.document_title,
            where=describe_place(source.collection, first.section, first.page, source.page_unit),
            quotes=tuple(dict.fromkeys(each.quote.strip() for each in cited)),
            version=_describe_version(first, known.get(first.document_id or 0)),
            address=build_address(address) if address else "",
            url=source.document.url,
        )
        notes.append(note)
    return tuple(notes)


def _describe_version(citation: Citation, document: Document | None) -> str:
    cited = citation.text_version[:_VERSION_CHARACTERS]
    said = _("Version %s") % cited if cited else ""
    if document is None:
        return ". ".join(filter(None, [said, _("The document has been removed since.")]))
    text = getattr(document, "text", None)
    now = text.content_hash[:_VERSION_CHARACTERS] if text is not None else ""
    if document.ingested_at is None or not now:
        return said
    day = date_format(timezone.localtime(document.ingested_at), "DATE_FORMAT")
    if not cited:
        return _("Version of today: %(version)s, read on %(day)s") % {"version": now, "day": day}
    if now == cited:
        return _("Version %(version)s, read on %(day)s") % {"version": cited, "day": day}
    return _("Version %(version)s; version %(now)s has replaced it, read on %(day)s") % {
        "version": cited,
        "now": now,
        "day": day,
    }
