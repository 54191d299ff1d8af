"""Describe the result of a computation over the rows of a table. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Operation(StrEnum):
    LOOK_UP = "look_up"
    ROWS = "rows"
    COMPARE = "compare"
    LIST = "list"
    COUNT = "count"
    LEAST = "least"
    MOST = "most"
    SUM = "sum"
    MEAN = "mean"


@dataclass(frozen=True, slots=True)
class ResultCell:
    """A cell that an answer shows. ``text`` is ``[start:end]`` of the document's text."""

    column: str
    text: str
    unit: str
    start: int
    end: int
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A table row that an answer shows, at ``[start:end]`` of the document's text."""

    chunk_id: int
    start: int
    end: int
    cells: tuple[ResultCell, ...]


@dataclass(frozen=True, slots=True)
class TableResult:
    """The answer to a question about a table: a computed value, or matching rows.

    ``value`` is a count, sum or mean, or empty. ``conditions`` are texts ("chocolate = yes"); ``matched`` of ``total``
    rows meet them. ``rows`` are at most 50 of the matching rows; their first ``name_columns`` cells name the row.
    ``ordinals`` are the rows' numbers in the table, from 1. ``answers`` are the texts that answer the question; if
    ``is_value`` is true, they are the highest or lowest value itself. ``targets`` are the indexes of the columns to
    show, ``asked`` of the columns that the question names. If ``is_markup`` is true, cells are Markdown. If
    ``is_ordered`` is true, rows are sorted by the first target, highest first, or lowest first if ``is_least`` is true.
    """

    operation: Operation
    document_id: int
    document_title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    conditions: tuple[str, ...]
    matched: int
    total: int
    value: str
    targets: tuple[int, ...] = ()
    name_columns: int = 1
    is_markup: bool = False
    ordinals: tuple[int, ...] = ()
    answers: tuple[str, ...] = ()
    is_value: bool = False
    is_ordered: bool = False
    is_least: bool = False
    asked: tuple[int, ...] = ()

    @property
    def is_computed(self) -> bool:
        return self.operation is not Operation.ROWS


@dataclass(frozen=True, slots=True)
class TableDocument:
    id: int
    title: str
    url: str
    collection: str


@dataclass(frozen=True, slots=True)
class ShownTable:
    """The part of a table that is shown below an answer, in the form of the API.

    Of the table's ``row_count`` rows, ``matched`` meet the ``conditions``. They come first in ``rows``. ``sorted_by``
    is the name of a column, or empty.
    """

    document: TableDocument
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    row_count: int
    matched: int
    shown: int
    sorted_by: str
    url: str
    conditions: tuple[str, ...] = ()
    summary: str = ""
