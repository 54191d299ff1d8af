"""What a computation over the rows of a table brings. PURE."""

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
    """A cell that is shown: the document's ``text[start:end]`` is ``text``; ``unit`` comes from the column's name.
    ``kind`` is the column's: number, text, boolean or date."""

    column: str
    text: str
    unit: str
    start: int
    end: int
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A row of the result, ``document.text[start:end]``; its first cells name the row, the others were asked for."""

    chunk_id: int
    start: int
    end: int
    cells: tuple[ResultCell, ...]


@dataclass(frozen=True, slots=True)
class TableResult:
    """The result of a computation over a table, or rows that match a question without a computed value.

    ``value`` is the count, the sum or the mean, or empty. ``conditions`` say in words which rows counted ("chocolate =
    yes"), and ``matched`` of ``total`` rows met them. ``rows`` are the rows shown, at most 50, and ``ordinals`` their
    numbers in the table, from 1. ``answers`` are the values that answer, as written in the document; ``is_value`` says
    that the highest or lowest value itself was asked for, not its row.

    The first ``name_columns`` of the ``columns`` name a row. ``targets`` are the places of the columns to show,
    ``asked`` the places of the ones that the question names; the remaining columns are the conditions'. ``is_markup``
    says that the cells are Markdown. ``is_ordered`` says that rows without a computed value are sorted by the first
    target, highest first, or lowest first with ``is_least``.
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
        """Whether a value is stated; not so where rows that match are shown without a claim."""
        return self.operation is not Operation.ROWS


@dataclass(frozen=True, slots=True)
class TableDocument:
    """The document that a shown table is from; ``url`` is its address on the web, ``collection`` a slug."""

    id: int
    title: str
    url: str
    collection: str


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A part of a table that is shown as a result, in the form of the API.

    ``rows`` have the texts of the cells in the order of the ``columns``. The table has ``row_count`` rows, of which
    ``matched`` meet the ``conditions``; these say in words how the question was understood. ``shown`` is the number of
    ``rows``, which begin with the matched ones. ``sorted_by`` is one of the columns, or empty. ``summary`` says all
    this in the question's language. ``url`` is the page on which a reader filters and sorts the table.
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
