from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from retrieval.models import DocumentText, Table
from retrieval.tables.filters import filter_rows, parse_filter, sort_rows
from retrieval.tables.known_tables import LoadedTable
from retrieval.tables.names import format_column_label
from retrieval.tables.stored_tables import load_stored_table
from retrieval.tables.table_reading import CAPTION_SEPARATOR, format_cell

ROWS_A_PAGE = 100
LONGEST_FILTER = 200


@dataclass(frozen=True, slots=True)
class ColumnHead:
    """A column of a shown table: name, the filter that the user typed, and the URL that sorts by it."""

    name: str
    field: str
    typed: str
    hint: str
    href: str
    sorting: str
    is_number: bool


def build_table_context(table: Table, query: Mapping[str, str]) -> dict[str, object]:
    """Return the variables of the template that shows a table.

    ``query`` may contain filters by column (``c0``, ``c1``, …), the column to sort by (``sort``, with ``-`` for highest
    first), and the page (from 1). ``problem`` names the columns with invalid filters.
    """
    known = load_stored_table(table)
    typed = {f"c{at}": _read_filter_text(query, f"c{at}") for at in range(len(known.columns))}
    conditions, unread = [], []
    for at, column in enumerate(known.columns):
        try:
            conditions += parse_filter(typed[f"c{at}"], at, column)
        except ValueError:
            unread.append(format_column_label(column.name))
    order, descending = _read_sort_order(query.get("sort", ""), len(known.columns))
    rows = filter_rows(known, conditions, order)
    if order is not None:
        rows = sort_rows(rows, order, descending=descending)
    last_page = max(1, -(-len(rows) // ROWS_A_PAGE))
    number = min(max(1, _read_number(query.get("page"))), last_page)
    first = (number - 1) * ROWS_A_PAGE
    listed = rows[first : first + ROWS_A_PAGE]
    filters = {name: words for name, words in typed.items() if words}
    sort = {"sort": query["sort"]} if order is not None else {}
    return {
        "table": table,
        "name": table.caption.rsplit(CAPTION_SEPARATOR, 1)[-1],
        "headings": [
            _build_heading(known, at, filters, order, descending=descending) for at in range(len(known.columns))
        ],
        "rows": _read_cells(table, known, [row.ordinal for row in listed]),
        "matched": len(rows),
        "first": first + 1 if listed else 0,
        "last": first + len(listed),
        "sort": sort.get("sort", ""),
        "is_filtered": bool(filters),
        "problem": _("This filter cannot be read: %(columns)s.") % {"columns": ", ".join(unread)} if unread else "",
        "previous": f"?{urlencode({**filters, **sort, 'page': number - 1})}" if number > 1 else "",
        "next": f"?{urlencode({**filters, **sort, 'page': number + 1})}" if number < last_page else "",
    }


def _read_filter_text(query: Mapping[str, str], name: str) -> str:
    return query.get(name, "").replace("\0", "").strip()[:LONGEST_FILTER]


def _read_sort_order(words: str, columns: int) -> tuple[int | None, bool]:
    at = words.removeprefix("-")
    is_column = at.isascii() and at.isdecimal() and len(at) < 4 and int(at) < columns
    return (int(at), words.startswith("-")) if is_column else (None, False)


def _read_number(words: str | None) -> int:
    return int(words) if words and words.isascii() and words.isdecimal() and len(words) < 9 else 1


def _build_heading(
    known: LoadedTable, at: int, filters: Mapping[str, str], order: int | None, *, descending: bool
) -> ColumnHead:
    column = known.columns[at]
    is_sorted = at == order
    hints = {"number": ">= 5", "boolean": _("yes"), "date": ">= 2020"}
    return ColumnHead(
        format_column_label(column.name),
        f"c{at}",
        filters.get(f"c{at}", ""),
        hints.get(column.kind, _("contains")),
        f"?{urlencode({**filters, 'sort': f'-{at}' if is_sorted and not descending else at})}",
        ("descending" if descending else "ascending") if is_sorted else "",
        column.kind == "number",
    )


def _read_cells(table: Table, known: LoadedTable, ordinals: Sequence[int]) -> list[list[tuple[str, bool]]]:
    text = DocumentText.objects.values_list("text", flat=True).get(pk=table.document_id)
    places = dict(table.rows.filter(ordinal__in=ordinals).values_list("ordinal", "cells"))
    return [
        [
            (format_cell(text[start:end]), column.kind == "number")
            for column, (start, end) in zip(known.columns, places[ordinal], strict=True)
        ]
        for ordinal in ordinals
        if ordinal in places
    ]
