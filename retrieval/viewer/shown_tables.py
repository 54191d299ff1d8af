"""The tables of a document in the source viewer, some rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from retrieval.models import Document, DocumentText, Table, TableRow

# Rows of one table, and of all tables on one page.
ROWS_SHOWN = 500
_ROWS_OF_PAGE = 2_000
_LEAST_ROWS = 20


@dataclass(frozen=True, slots=True)
class ShownCell:
    """``sort_key`` is what it is sorted by where that is not its text; ``is_first_marked`` is where the page scrolls
    to."""

    text: str
    sort_key: str
    is_number: bool
    is_marked: bool
    is_first_marked: bool


@dataclass(frozen=True, slots=True)
class ShownRow:
    cells: tuple[ShownCell, ...]
    is_marked: bool


@dataclass(frozen=True, slots=True)
class ShownTable:
    """``columns`` are names, with whether each is one of numbers. Rows ``first`` to ``last`` of ``total``; the
    addresses of the rows before and after are empty at the ends."""

    start: int
    end: int
    anchor: str
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[ShownRow, ...]
    first: int
    last: int
    total: int
    previous: str
    next: str

    @property
    def is_paged(self) -> bool:
        return len(self.rows) < self.total


def show_tables(
    document: Document, served: DocumentText, passage: tuple[int, int] | None, query: Mapping[str, str]
) -> list[ShownTable]:
    """The tables in the order of the text. Of each the rows around the passage, or the first ones.

    ``query`` may name one of them (``table``), and which of its stretches of rows is shown (``rows``, from 1).
    """
    tables = list(Table.objects.filter(document=document))
    share = _ROWS_OF_PAGE // max(1, len(tables))
    limit = max(_LEAST_ROWS, min(ROWS_SHOWN, share))
    asked = _read_number(query.get("table"))
    return [_show(table, served.text, passage, query if table.ordinal == asked else {}, limit) for table in tables]


def _show(table: Table, text: str, passage: tuple[int, int] | None, query: Mapping[str, str], limit: int) -> ShownTable:
    number = _read_number(query.get("rows"))
    stretch = max(0, number - 1) if number is not None else 0
    if number is None and passage and table.start < passage[1] and passage[0] < table.end:
        stretch = table.rows.filter(end__lte=passage[0]).count() // limit
    first = min(stretch * limit, max(0, table.row_count - 1) // limit * limit)
    rows = table.rows.order_by("ordinal")[first : first + limit]
    shown = tuple(_show_row(row, text, passage) for row in rows)
    last = first + len(shown)

    def address(stretch: int) -> str:
        places = {"start": passage[0], "end": passage[1]} if passage else {}
        return "?" + urlencode({**places, "table": table.ordinal, "rows": stretch + 1}) + f"#table-{table.pk}"

    return ShownTable(
        table.start,
        table.end,
        f"table-{table.pk}",
        tuple((name, kind == "number") for name, kind, _unit in table.columns),
        shown,
        first + 1,
        last,
        table.row_count,
        address(first // limit - 1) if first else "",
        address(first // limit + 1) if last < table.row_count else "",
    )


def _show_row(row: TableRow, text: str, passage: tuple[int, int] | None) -> ShownRow:
    places: Sequence[tuple[int, int]] = row.cells
    is_marked = passage is not None and passage[0] < row.end and row.start < passage[1]
    # What is cited within a row is one cell of it, or the row.
    within = [at for at, (start, end) in enumerate(places) if passage and start <= passage[0] and passage[1] <= end]
    is_first = bool(passage and row.start <= passage[0])
    cells = []
    for at, ((start, end), value) in enumerate(zip(places, row.values, strict=True)):
        words = text[start:end]
        marks_cell = is_marked and bool(words) and (not within or at in within)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        key = "" if value is None or value == words else str(value)
        cells.append(ShownCell(words, key, is_number, marks_cell, is_first and marks_cell))
        is_first = is_first and not marks_cell
    return ShownRow(tuple(cells), is_marked)


def _read_number(words: str | None) -> int | None:
    return int(words) if words and words.isdecimal() and len(words) < 9 else None
