"""The tables of a document in the source viewer, some rows at a time, with the text between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from retrieval.models import Document, Table, TableRow
from retrieval.text.sentences import strip_range
from retrieval.viewer.plain_text import Heading, HtmlWriter, query_string, write_text

# Rows of one table, and of all tables on one page.
ROWS_SHOWN = 500
_ROWS_OF_PAGE = 2_000
_LEAST_ROWS = 20


def write_tables(
    writer: HtmlWriter,
    document: Document,
    pages: Sequence[Sequence[int]],
    sections: Sequence[Heading],
    query: Mapping[str, str],
) -> bool:
    """Each table in a part of its own, with the text between the tables; False, and nothing is written, without tables.

    Of each table the rows around the passage are shown, or the first ones. ``query`` may name one of them (``table``),
    and which of its stretches of rows is shown (``rows``, from 1).
    """
    tables = list(Table.objects.filter(document=document))
    limit = max(_LEAST_ROWS, min(ROWS_SHOWN, _ROWS_OF_PAGE // max(1, len(tables))))
    asked = _read_number(query.get("table"))
    at = 0
    for table in tables:
        _write_between(writer, pages, sections, at, table.start)
        _write_table(writer, table, query if table.ordinal == asked else {}, limit)
        writer.begin_part()
        at = table.end
    if tables:
        _write_between(writer, pages, sections, at, len(writer.text))
    return bool(tables)


def _write_between(
    writer: HtmlWriter, pages: Sequence[Sequence[int]], sections: Sequence[Heading], start: int, end: int
) -> None:
    start, end = strip_range(writer.text, start, end)
    if start < end:
        write_text(writer, pages, sections, (start, end), _("Page {}"))


def _write_table(writer: HtmlWriter, table: Table, query: Mapping[str, str], limit: int) -> None:
    number = _read_number(query.get("rows"))
    stretch = max(0, number - 1) if number is not None else 0
    if number is None and writer.touches(table.start, table.end):
        stretch = table.rows.filter(end__lte=writer.passage[0]).count() // limit
    first = min(stretch * limit, max(0, table.row_count - 1) // limit * limit)
    rows = list(table.rows.order_by("ordinal")[first : first + limit])
    last = first + len(rows)
    is_paged = len(rows) < table.row_count
    label = escape(_("Table"))
    writer.html(
        f'<div class="table-scroll" role="group" tabindex="0" aria-label="{label}" id="table-{table.pk}">'
        f"<table{' data-paged' if is_paged else ''}><thead><tr>"
    )
    for name, kind, _unit in table.columns:
        writer.html(f'<th scope="col"{_alignment(kind == "number")}>{escape(name)}</th>')
    writer.html("</tr></thead><tbody>")
    for row in rows:
        _write_row(writer, row)
    writer.html("</tbody></table></div>")
    if is_paged:
        passage = writer.passage if any(writer.passage) else None

        def address(stretch: int) -> str:
            return f"{query_string(passage, table=table.ordinal, rows=stretch + 1)}#table-{table.pk}"

        context: dict[str, object] = {"first": first + 1, "last": last, "total": table.row_count}
        context["previous"] = address(first // limit - 1) if first else ""
        context["next"] = address(first // limit + 1) if last < table.row_count else ""
        writer.html(render_to_string("retrieval/_table_pages.html", context))


def _write_row(writer: HtmlWriter, row: TableRow) -> None:
    writer.html("<tr>")
    for (start, end), value in zip(row.cells, row.values, strict=True):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # The value to sort by, if it differs from the text.
        key = "" if value is None or value == writer.text[start:end] else f' data-value="{escape(str(value))}"'
        writer.html(f"<td{_alignment(is_number)}{key}>")
        writer.words(start, end)
        writer.html("</td>")
    writer.html("</tr>\n")


def _alignment(is_number: bool) -> str:
    return ' class="align-right"' if is_number else ""


def _read_number(words: str | None) -> int | None:
    return int(words) if words and words.isdecimal() and len(words) < 9 else None
