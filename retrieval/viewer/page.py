"""Build the source viewer's page, which shows a document with a marked passage."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import NotRequired, TypedDict
from urllib.parse import urlencode

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.utils.translation import gettext as _

from retrieval.documents.extraction.markdown import parse_front_matter
from retrieval.documents.formats import ViewerLayout, get_viewer_layout
from retrieval.documents.recognition.pages import LOW_CONFIDENCE, find_page
from retrieval.models import Document, DocumentText, Table, TableRow
from retrieval.text.extracted import find_sections_above
from retrieval.text.sentences import strip_range
from retrieval.viewer import markdown_page, pdf_pages, plain_text
from retrieval.viewer.passage_borders import PassageBorders
from retrieval.viewer.pdf_drawing import find_boxes
from retrieval.viewer.plain_text import Heading, HtmlWriter, write_text_as_html

logger = logging.getLogger(__name__)

_OUTLINE_ENTRIES = 150
# Larger documents are shown as plain text. Rendering a million characters of prose takes half a second. Rendering
# as much markup takes a hundred times as long.
_RENDERED_CHARACTERS = 1_000_000
_RENDERED_MARKS = 50_000
_MARKS = re.compile(r"[*_\[\]<>&|!`~#]")
ROWS_SHOWN = 500
_ROWS_OF_PAGE = 2_000
_LEAST_ROWS = 20
_WRAPPED = (ViewerLayout.PROSE, ViewerLayout.PRINTED)


class RecognitionContext(TypedDict, total=False):
    """A sentence on OCR for a page of the viewer: ``warning`` if the text is doubtful, otherwise ``recognised``."""

    warning: str
    recognised: str


class PagePictureContext(RecognitionContext):
    """The variables of the template for a page that is shown as a picture. ``number`` starts at 1.

    A ``problem`` is shown instead of the picture.
    """

    number: int
    count: int
    is_open: bool
    previous: str
    next: str
    problem: NotRequired[str]
    layout: NotRequired[pdf_pages.PageLayout]
    src: NotRequired[str]
    note: NotRequired[str]


class MarkdownContext(TypedDict):
    """The variables of the template for a document that can be shown as Markdown or as plain text.

    If there are no ``parts``, the plain text is shown, and ``not_rendered`` is the reason.
    """

    rendered_href: str
    text_href: str
    not_rendered: NotRequired[str]
    parts: NotRequired[list[str]]
    look: NotRequired[str]


class ViewerContext(TypedDict):
    """The variables of the source viewer's template. ``look`` are CSS classes, ``parts`` is HTML."""

    has_text: bool
    marked: tuple[int, int] | None
    is_code: bool
    is_slides: bool
    is_tabular: bool
    outline: list[Heading]
    look: str
    above: NotRequired[list[Heading]]
    page: NotRequired[int | None]
    first_line: NotRequired[int | None]
    printed: NotRequired[PagePictureContext]
    rendered_href: NotRequired[str]
    text_href: NotRequired[str]
    not_rendered: NotRequired[str]
    parts: NotRequired[Sequence[str]]


def build_viewer_context(
    document: Document, served: DocumentText, query: Mapping[str, str], borders: PassageBorders | None = None
) -> ViewerContext:
    """Return the variables of the template that shows ``served``, a document's text.

    ``query`` may contain a passage (``start``, ``end``), a page of a PDF (``page``), and ``view=text`` for the exact
    text. Invalid values are ignored. If ``borders`` is given, the exact text is shown with the borders of its passages.
    """
    text = served.text
    passage = plain_text.parse_passage(text, query.get("start"), query.get("end"))
    view = get_viewer_layout(document.media_type)
    sections = [Heading(start, level, title) for start, level, title in served.sections]
    context: ViewerContext = {
        "has_text": True,
        "marked": passage,
        "is_code": view is ViewerLayout.CODE,
        "is_slides": view is ViewerLayout.SLIDES,
        "is_tabular": view in (ViewerLayout.RECORDS, ViewerLayout.TABLES),
        "outline": _build_outline(sections, passage),
        "look": "is-tabular" if view in (ViewerLayout.RECORDS, ViewerLayout.TABLES) else "",
    }
    if passage:
        context["above"] = find_sections_above(sections, passage[0])
        context["page"] = plain_text.find_page_number(served.pages, passage[0])
        context["first_line"] = text.count("\n", 0, passage[0]) + 1 if view is ViewerLayout.CODE else None
    if view is ViewerLayout.PRINTED and served.pages:
        context["printed"] = _build_printed_context(document, served, passage, query.get("page"))
    if borders is not None:
        writer = HtmlWriter(text, passage)
        borders.write_text(writer, served.pages, sections)
        look = (
            "has-borders"
            if view not in (ViewerLayout.CODE, ViewerLayout.RECORDS, ViewerLayout.TABLES)
            else "has-borders is-tabular"
        )
        context = {**context, "parts": writer.html_parts, "look": look, "is_code": False}
    elif view in (ViewerLayout.MARKDOWN, ViewerLayout.CONVERTED, ViewerLayout.SLIDES):
        wants_text = query.get("view") == "text"
        context = {**context, **_build_markdown_context(document, served, passage, view, wants_text=wants_text)}
    if "parts" not in context:
        writer = HtmlWriter(plain_text.unwrap_lines(text, sections) if view in _WRAPPED else text, passage)
        if view is ViewerLayout.CODE:
            plain_text.write_code(writer, _("Line {}"))
        elif view in (ViewerLayout.TABLES, ViewerLayout.PRINTED) and write_tables(
            writer, document, served.pages, sections, query
        ):
            context["look"] = "is-rendered has-tables"
        else:
            write_text_as_html(writer, served.pages, sections, page_label=_("Page {}"))
        context["parts"] = writer.html_parts
    context["parts"] = [mark_safe(part) for part in context["parts"]]  # noqa: S308
    return context


@dataclass(frozen=True, slots=True)
class PassageSurroundings:
    parts: Sequence[str]
    is_cut_before: bool
    is_cut_after: bool


def select_parts_around_passage(parts: Sequence[str]) -> PassageSurroundings:
    """Return the part with the passage, and the parts before and after it; without a passage, the first two parts."""
    at = next((number for number, part in enumerate(parts) if 'id="passage"' in part), 0)
    first, last = max(at - 1, 0), at + 2
    return PassageSurroundings(parts[first:last], first > 0, last < len(parts))


def _build_outline(sections: list[Heading], passage: tuple[int, int] | None) -> list[Heading]:
    if not sections:
        return []
    for deepest in range(max(section.level for section in sections), 0, -1):
        shown = [section for section in sections if section.level <= deepest]
        if len(shown) <= _OUTLINE_ENTRIES:
            break
    shown = shown[:_OUTLINE_ENTRIES]
    above = find_sections_above(shown, passage[0]) if passage else []
    current = above[-1].start if above else None
    top = min((section.level for section in shown), default=1)
    return [replace(s, level=s.level - top + 1, is_current=s.start == current) for s in shown]


def _build_url_query(passage: tuple[int, int] | None, **more: object) -> str:
    places = {"start": passage[0], "end": passage[1]} if passage else {}
    return "?" + urlencode({**places, **more})


def _build_markdown_context(
    document: Document, served: DocumentText, passage: tuple[int, int] | None, view: ViewerLayout, *, wants_text: bool
) -> MarkdownContext:
    text, pages = served.text, served.pages if view is ViewerLayout.SLIDES else []
    jump = "#passage" if passage else ""
    context: MarkdownContext = {
        "rendered_href": _build_url_query(passage) + jump,
        "text_href": _build_url_query(passage, view="text") + jump,
    }
    if wants_text:
        return context
    if len(text) > _RENDERED_CHARACTERS or sum(1 for _mark in _MARKS.finditer(text)) > _RENDERED_MARKS:
        return context | {"not_rendered": _("This document is too long for its layout to be shown. This is its text.")}

    def hrefs(sources: AbstractSet[str]) -> dict[str, str]:
        # Whoever may read this document may also read the titles of others in its collection.
        found = Document.objects.filter(collection=document.collection_id, source__in=sources)
        return {source: reverse("retrieval:document", args=[pk]) for source, pk in found.values_list("source", "pk")}

    parts = markdown_page.render_document(
        text,
        body_start=parse_front_matter(text)[1] if view is ViewerLayout.MARKDOWN else 0,
        passage=passage,
        source=document.source,
        hrefs=hrefs,
        line_breaks=view is not ViewerLayout.MARKDOWN,
        page_starts=[start for _number, start, _end in pages],
    )
    # The passage is text that is not shown, such as the address of a link.
    if passage and not any("<mark" in part for part in parts):
        return context | {"not_rendered": _("The passage is not visible in the laid-out document; this is its text.")}
    if view is not ViewerLayout.SLIDES:
        return context | {"parts": parts, "look": "is-rendered"}
    numbers = [number for number, start, end in pages if text[start:end].strip()]
    label = escape(_("Slide {}"))
    above = [f'<p class="slide-number" id="page-{number}">{label.format(number)}</p>' for number in numbers]
    slides = [number + part for number, part in zip(above, parts, strict=True)]
    return context | {"parts": slides, "look": "is-rendered is-slides"}


def write_tables(
    writer: HtmlWriter,
    document: Document,
    pages: Sequence[Sequence[int]],
    sections: Sequence[Heading],
    query: Mapping[str, str],
) -> bool:
    """Write each table as a part of its own, and the text between tables. Return False if there are no tables.

    ``query`` may choose a table and a range of its ``rows``, from 1.
    """
    tables = list(Table.objects.filter(document=document))
    limit = max(_LEAST_ROWS, min(ROWS_SHOWN, _ROWS_OF_PAGE // max(1, len(tables))))
    asked = _read_number(query.get("table"))
    at = 0
    for table in tables:
        _write_text_range(writer, pages, sections, at, table.start)
        _write_table(writer, table, query if table.ordinal == asked else {}, limit)
        writer.begin_html_part()
        at = table.end
    if tables:
        _write_text_range(writer, pages, sections, at, len(writer.text))
    return bool(tables)


def _write_text_range(
    writer: HtmlWriter, pages: Sequence[Sequence[int]], sections: Sequence[Heading], start: int, end: int
) -> None:
    start, end = strip_range(writer.text, start, end)
    if start < end:
        write_text_as_html(writer, pages, sections, (start, end), _("Page {}"))


def _write_table(writer: HtmlWriter, table: Table, query: Mapping[str, str], limit: int) -> None:
    number = _read_number(query.get("rows"))
    page_index = max(0, number - 1) if number is not None else 0
    if number is None and writer.is_partly_in_passage(table.start, table.end):
        page_index = table.rows.filter(end__lte=writer.passage[0]).count() // limit
    first = min(page_index * limit, max(0, table.row_count - 1) // limit * limit)
    rows = list(table.rows.order_by("ordinal")[first : first + limit])
    last = first + len(rows)
    is_paged = len(rows) < table.row_count
    label = escape(_("Table"))
    writer.write_html(
        f'<div class="table-scroll" role="group" tabindex="0" aria-label="{label}" id="table-{table.pk}">'
        f"<table{' data-paged' if is_paged else ''}><thead><tr>"
    )
    for name, kind, _unit in table.columns:
        writer.write_html(f'<th scope="col"{_format_alignment_attribute(kind == "number")}>{escape(name)}</th>')
    writer.write_html("</tr></thead><tbody>")
    for row in rows:
        _write_row(writer, row)
    writer.write_html("</tbody></table></div>")
    if is_paged:
        passage = writer.passage if any(writer.passage) else None

        def build_pager_address(page_index: int) -> str:
            return f"{_build_url_query(passage, table=table.ordinal, rows=page_index + 1)}#table-{table.pk}"

        context: dict[str, object] = {"first": first + 1, "last": last, "total": table.row_count}
        context["previous"] = build_pager_address(first // limit - 1) if first else ""
        context["next"] = build_pager_address(first // limit + 1) if last < table.row_count else ""
        writer.write_html(render_to_string("retrieval/_table_pages.html", context))


def _write_row(writer: HtmlWriter, row: TableRow) -> None:
    writer.write_html("<tr>")
    for (start, end), value in zip(row.cells, row.values, strict=True):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        key = "" if value is None or value == writer.text[start:end] else f' data-value="{escape(str(value))}"'
        writer.write_html(f"<td{_format_alignment_attribute(is_number)}{key}>")
        writer.write_words(start, end)
        writer.write_html("</td>")
    writer.write_html("</tr>\n")


def _format_alignment_attribute(is_number: bool) -> str:
    return ' class="align-right"' if is_number else ""


def _read_number(words: str | None) -> int | None:
    return int(words) if words and words.isdecimal() and len(words) < 9 else None


def _build_printed_context(
    document: Document, served: DocumentText, passage: tuple[int, int] | None, wanted: str | None
) -> PagePictureContext:
    pages = {number: (start, end) for number, start, end in served.pages}
    number = plain_text.find_page_number(served.pages, passage[0]) if passage else None
    asked = _read_number(wanted)
    number = (asked if asked in pages else number) or next(iter(pages))
    printed: PagePictureContext = {
        "number": number,
        "count": len(pages),
        "is_open": bool(passage or wanted),
        "previous": _build_page_address(pages, number - 1, passage),
        "next": _build_page_address(pages, number + 1, passage),
    }
    if document.content_hash != served.content_hash:
        return printed | {"problem": _("A new version of the file is being read; its pages can be seen after that.")}
    start, end = pages[number]
    first, last = (max(passage[0], start), min(passage[1], end)) if passage else (start, start)
    words = served.text[first : max(first, last)]
    try:
        before = served.text[start:first]
        layout = _measure_page_layout(document, served, number, words, before)
    except pdf_pages.TooManyDrawings:
        return printed | {
            "problem": _("Many pages are being drawn. Reload this page in a moment to see it as printed.")
        }
    except pdf_pages.PageNotDrawn as error:
        logger.warning("page not drawn", extra={"document": document.pk, "page": number, "reason": str(error)})
        return printed | {"problem": _("This page cannot be shown as a picture. Its text is on this page.")}
    is_lost = bool(words.strip()) and not layout.boxes
    if is_lost:
        logger.info("passage not found on its page", extra={"document": document.pk, "page": number})
    address = reverse("retrieval:page_picture", args=[document.pk, number])
    return {
        **printed,
        **_describe_text_recognition(served, number),
        "layout": layout,
        "src": f"{address}?version={served.content_hash[:12]}",
        "note": _("The passage's words could not be found on the picture.") if is_lost else "",
    }


def _measure_page_layout(
    document: Document, served: DocumentText, number: int, words: str, before: str
) -> pdf_pages.PageLayout:
    source = find_document_file(document)
    if number not in {page for page, _confidence in served.recognised}:
        return pdf_pages.measure_page_layout(source, number, words, before, served.content_hash)
    layout = pdf_pages.measure_page_layout(source, number, content_hash=served.content_hash)
    seen = find_page(served.content_hash, number) if words.strip() else None
    if seen is None:
        return layout
    boxes = find_boxes(seen, words, sum(map(str.isalnum, before)))
    return replace(layout, boxes=tuple(boxes))


def _describe_text_recognition(served: DocumentText, number: int) -> RecognitionContext:
    confidences = dict(served.recognised)
    if number not in confidences:
        return {}
    confidence = confidences[number]
    if confidence is None:
        return {"warning": _("The text of this page was not recognised: it is not searched.")}
    values = {"percent": round(confidence)}
    if confidence < LOW_CONFIDENCE:
        said = _("This text was recognised with a confidence of %(percent)d %% only. Compare it with the picture.")
        return {"warning": said % values}
    return {
        "recognised": _("This text was recognised on the picture (OCR), with a confidence of %(percent)d %%.") % values
    }


def _build_page_address(pages: Iterable[int], number: int, passage: tuple[int, int] | None) -> str:
    return f"{_build_url_query(passage, page=number)}#page-{number}" if number in pages else ""


def find_document_file(document: Document) -> pdf_pages.Source:
    """Return the document's file. Raises: PageNotDrawn if it is missing."""
    try:
        try:
            return Path(document.file.path)
        except NotImplementedError:
            with document.file.open("rb") as file:
                return bytes(file.read())
    except (ValueError, OSError) as error:
        raise pdf_pages.PageNotDrawn(str(error)) from error
