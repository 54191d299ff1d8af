"""Numbered sources and citations as the page shows them, and an answer as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Any

from django.utils.formats import date_format
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from chat.models import Citation
from chat.streaming.payloads import source_of
from retrieval.passage_address import passage_url
from retrieval.tables.lexicon import label_of
from retrieval.text.block_items import read_cells
from retrieval.text.markup import open_notes, strip_markup

# A table's row as extraction wrote it, ``column: value; column: value``, laid out a column a line. Pure.

# Fewer may be prose: "Open: yes; parking: no".
FEWEST_COLUMNS = 4
_ASKED = re.compile(r"[^\s:;][^:;\n]{0,60}: [^\n]+$")
_COLUMN = re.compile(r"(?:^|; )(?P<name>[^\s:;][^:;]{0,60}): ")


def record_paragraphs(markdown: MarkdownIt) -> None:
    """A markdown-it plugin: paragraphs that are records get the class ``record``, and each column a line of its own.
    A record below cells that are asked for is folded, and these get the class ``asked``.

    A value may hold semicolons: what follows one without a column's name still belongs to it.
    """
    markdown.core.ruler.push("record_paragraphs", _lay_out)


def _lay_out(state: StateCore) -> None:
    tokens: list[Token] = []
    asked: list[Token] = []
    for opening, inline in pairwise([*state.tokens, Token("", "", 0)]):
        tokens.append(opening)
        if opening.type != "paragraph_open" or inline.type != "inline":
            continue
        if _is_record(inline.content):
            opening.attrSet("class", "record")
            _break_lines(inline)
            if asked and len(asked) == len([token for token in tokens if token.type == "paragraph_open"]) - 1:
                for each in asked:
                    each.attrSet("class", "asked")
                tokens[-1:] = [*_fold(), opening]
        elif _ASKED.match(inline.content):
            asked.append(opening)
    state.tokens[:] = tokens
    if any(token.tag == "details" for token in tokens):
        state.tokens.append(Token("details_close", "details", -1, block=True))


def _fold() -> Iterator[Token]:
    yield Token("details_open", "details", 1, attrs={"class": "fields"}, block=True)
    yield Token("summary_open", "summary", 1, block=True)
    yield Token("inline", "", 0, children=[Token("text", "", 0, content=_("All fields"))], content="", block=True)
    yield Token("summary_close", "summary", -1, block=True)


def _break_lines(inline: Token) -> None:
    inline.children, children = [], inline.children or []
    for number, child in enumerate(children):
        # A mark may open before the first column.
        first = not any(before.content for before in children[:number])
        inline.children += _columns(child, first=first) if child.type == "text" else (child,)


def _is_record(content: str) -> bool:
    names = [match["name"] for match in _COLUMN.finditer(content)]
    return _COLUMN.match(content) is not None and len(names) >= FEWEST_COLUMNS and "\n" not in content


def show_records(text: str) -> str:
    """The text, with its records written as cells in a row: ``column value · column value``."""
    return "\n".join(" · ".join(_cells(line)) if _is_record(line) else line for line in text.split("\n"))


def _cells(line: str) -> Iterator[str]:
    names = list(_COLUMN.finditer(line))
    for match, following in zip(names, [*names[1:], None], strict=True):
        yield f"{label_of(match['name'])} {line[match.end() : following.start() if following else len(line)]}"


def _columns(text: Token, *, first: bool) -> Iterator[Token]:
    """The text, with its columns separated by line breaks and their names emphasised; ``first`` opens the paragraph."""
    position = 0
    for match in _COLUMN.finditer(text.content):
        if match.start() == 0 and not match.group().startswith("; ") and not first:
            continue  # the rest of a value behind a piece of code or a link
        yield from _text(text, text.content[position : match.start()])
        if match.start() > 0 or not first:
            yield Token("hardbreak", "br", 0)
        yield Token("strong_open", "strong", 1)
        yield from _text(text, label_of(match["name"]))
        yield Token("strong_close", "strong", -1)
        yield from _text(text, " ")
        position = match.end()
    yield from _text(text, text.content[position:])


def _text(like: Token, content: str) -> Iterator[Token]:
    if content:
        yield Token("text", "", 0, content=content, level=like.level)


# What a citation and its row call the same.
_OF_CITATION = (
    *("marker", "section", "page", "quote", "support", "marker_start", "verbatim", "marked_start", "marked_end"),
)
_EXCERPT_CHARACTERS = 260
_PREVIEW_CHARACTERS = 420
_ROW = re.compile(r"[ \t]*+\|(?![-:| \t]+$)[^\n]*\|[ \t]*+")
_SIGNS = (
    (re.compile(r"^[ \t]*+(?:```.*|(?=(?:[ \t:|]|-(?!-))*--)[ \t:|-]*+)$", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*(?:#{1,6}|>|[-*+])[ \t]+", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*+\|[ \t]*+|(?<![ \t])[ \t]++\|[ \t]*+$|\|[ \t]*+$", re.MULTILINE), ""),
    (re.compile(r"(?<![ \t])[ \t]++\|[ \t]++"), " · "),
    (re.compile(r"(\*\*|`)(?=\S)([^\n]{1,200}?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
)


@dataclass(frozen=True, slots=True)
class _Shown:
    """``href`` is empty if the document was deleted."""

    marker: int
    href: str
    title: str
    section: str
    page: int | None
    page_unit: str
    collection: str = field(default="", kw_only=True)

    @property
    def document(self) -> str:
        """The document's title and its collection."""
        return ", ".join(filter(None, (self.title, self.collection)))

    @property
    def where(self) -> str:
        return place(self.collection, self.section, self.page, self.page_unit)


@dataclass(frozen=True, slots=True)
class Cited(_Shown):
    """A verified citation, whose words remain if its document is deleted.

    ``marker_start`` is the offset of its marker in the answer; None if it belongs to every mention of its marker.
    """

    quote: str
    support: float | None = None
    marker_start: int | None = None
    verbatim: bool = False
    marked_start: int | None = None
    marked_end: int | None = None

    @property
    def preview(self) -> str:
        return Truncator(plain(self.quote)).chars(_PREVIEW_CHARACTERS)

    @property
    def name(self) -> str:
        """The name that a screen reader says for the marker."""
        page = f", {page_label(self.page, self.page_unit)}" if self.page else ""
        return _("Source %(marker)d: %(title)s") % {"marker": self.marker, "title": self.document} + page

    @property
    def support_in_words(self) -> str:
        if self.verbatim:
            return _("Quoted word for word")
        if self.support is None:
            return ""
        return _("Supports the sentence: %(percent)d %%") % {"percent": round(100 * self.support)}


@dataclass(frozen=True, slots=True)
class SourceCard(_Shown):
    """A numbered source beside the answer. ``chunk_id`` is that of its best passage."""

    excerpt: str
    chunk_id: int | None = None
    quotes: tuple[Cited, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultCard:
    """A passage beside an answer, or in its place. ``text`` is Markdown, ``quote`` the words closest to the question.
    ``chunk_id`` is None in answers of before.
    """

    chunk_id: int | None
    href: str
    title: str
    where: str
    text: str
    quote: str

    @property
    def snippet(self) -> str:
        return Truncator(plain(self.quote)).chars(_EXCERPT_CHARACTERS)


def result_cards(alternatives: Iterable[Mapping[str, Any]]) -> tuple[ResultCard, ...]:
    """Cards of the alternatives that are saved with an answer. Answers of before have a quotation without a text."""
    return tuple(
        ResultCard(
            chunk_id=found.get("chunk_id"),
            href=passage_url(found["document"]["id"], found["start"], found["end"]),
            title=found["document"]["title"],
            where=place(found.get("collection", ""), found["section"], found["page"], found.get("page_unit", "page")),
            text=found.get("text") or found["quote"],
            quote=found["quote"],
        )
        for found in alternatives
    )


def source_cards(sources: Iterable[Mapping[str, Any]], citations: Iterable[Cited] = ()) -> tuple[SourceCard, ...]:
    """Source cards from the payload of `searched`, each with its quotations."""
    quotes: dict[int, dict[tuple[str, str], Cited]] = {}
    for cited in citations:
        quotes.setdefault(cited.marker, {}).setdefault((cited.href, cited.quote), cited)
    return tuple(_source_card(source, tuple(quotes.get(source["marker"], {}).values())) for source in sources)


def _source_card(source: Mapping[str, Any], quotes: tuple[Cited, ...]) -> SourceCard:
    """The card's place is that of its first quotation, or the beginning of the source if nothing is quoted."""
    return SourceCard(
        marker=source["marker"],
        href=passage_url(source["document"]["id"], source["start"], source["end"]),
        title=source["document"]["title"],
        section=quotes[0].section if quotes else source["section"],
        page=quotes[0].page if quotes else source["page"],
        page_unit=source.get("page_unit", "page"),
        excerpt=Truncator(plain(source.get("snippet") or source["content"])).chars(_EXCERPT_CHARACTERS),
        chunk_id=source.get("chunk_id"),
        quotes=quotes,
        collection=source.get("collection", ""),
    )


def page_label(page: int, unit: str) -> str:
    label = _("slide %(page)d") if unit == "slide" else _("page %(page)d")
    return (label % {"page": page}).replace(" ", "\u00a0")


def place(collection: str, section: str, page: int | None, unit: str) -> str:
    return " · ".join(filter(None, (collection, section, page_label(page, unit) if page else "")))


def plain(text: str) -> str:
    """The words of Markdown on one line, without pictures and addresses, and without the signs of headings, emphasis,
    code, tables and records.
    """
    lines = strip_markup(open_notes(text), all_links=True).split("\n")
    rows = (" · ".join(filter(None, read_cells(line))) if _ROW.fullmatch(line) else line for line in lines)
    text = show_records("\n".join(rows))
    for pattern, replacement in _SIGNS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def build_cited(citation: Citation) -> Cited:
    source = source_of(citation.answer, citation)
    return Cited(
        href=passage_url(citation.document_id, citation.start, citation.end),
        title=citation.document_title,
        page_unit=source["page_unit"],
        collection=source["collection"],
        **{name: getattr(citation, name) for name in _OF_CITATION},
    )


# An answer as one text, for readers who get nothing but its words.


def whole_text(answer: Mapping[str, Any]) -> str:
    """The text of an answer (in the form of chat.streaming.payloads.completed), its table, its alternatives and
    suggested questions; of an approved answer also who approved it.

    It begins with the answer's own text, so that the offsets of its markers stay valid.
    """
    parts = [answer["answer"]]
    if (table := answer.get("table")) and not shows_rows(answer["answer"]):
        parts.append(_table_text(table))
    others = result_cards(answer["alternatives"])
    if others and not answer["refused"]:
        parts.append(_("Also in the documents:"))
    for other in others:
        quote = "\n".join(f"> {line}".rstrip() for line in _quote_text(other.quote).splitlines())
        parts.append(f"{' · '.join(filter(None, [other.title, other.where]))}\n\n{quote}")
    if choices := answer["choices"]:
        parts.append("\n".join([_("Did you mean:"), *(f"- {choice['question']}" for choice in choices)]))
    if approved := answer.get("approved"):
        parts.append(approved_line(approved["by"], date.fromisoformat(approved["on"])))
    return "\n\n".join(parts)


def shows_rows(text: str) -> bool:
    """Whether an answer's text has rows of a table, which are then not shown twice."""
    return "\n|---" in text


def _table_text(table: Mapping[str, Any]) -> str:
    """A table shown as a result, as Markdown below what it is."""
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    written = [" | ".join(cell.replace("|", r"\|") for cell in line) for line in lines]
    rows = "\n".join(f"| {line} |" for line in written)
    return f"{table['caption']}: {table['summary']}\n\n{rows}"


def _quote_text(quote: str) -> str:
    return plain(quote) if _ROW.fullmatch(quote.strip()) else strip_markup(quote)


def approved_line(by: str, on: date) -> str:
    """The sentence that says who approved an answer."""
    return _("Approved by %(name)s on %(date)s") % {"name": by, "date": date_format(on)}
