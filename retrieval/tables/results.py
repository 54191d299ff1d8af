"""The result of a computation over the rows of a table. PURE."""

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
    """A shown cell: ``text`` is the document's ``text[start:end]``."""

    column: str
    text: str
    unit: str
    start: int
    end: int
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of the result, ``document.text[start:end]``; its first cells name the row."""

    chunk_id: int
    start: int
    end: int
    cells: tuple[ResultCell, ...]


@dataclass(frozen=True, slots=True)
class TableResult:
    """A computed value, or rows that match a question.

    ``value`` is the count, the sum or the mean, or empty. ``conditions`` are in words ("chocolate = yes"); ``matched``
    of ``total`` rows met them. ``rows`` are at most 50, and ``ordinals`` their numbers in the table, from 1.
    ``is_value``: ``answers`` are the extreme value itself. ``targets`` are the indexes of columns to show, ``asked`` of
    columns that the question names. ``is_markup`` is true for Markdown cells. ``is_ordered`` rows are sorted by the
    first target, highest first unless ``is_least``.
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
    """A shown table's document."""

    id: int
    title: str
    url: str
    collection: str


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A shown part of a table, in the form of the API.

    ``matched`` of ``row_count`` rows meet the ``conditions`` (in words), and come first in ``rows``. ``sorted_by`` is a
    column, or empty.
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
