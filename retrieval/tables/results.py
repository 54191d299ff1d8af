"""The results of computations over a table, and the parts of tables that answers show."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TableOperation(StrEnum):
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

    - ``value``: a count, sum or mean, or empty.
    - ``conditions``: texts such as "chocolate = yes".
    - ``matched``: the number of rows that meet all conditions, of ``total`` rows in the table.
    - ``rows``: at most 50 matching rows; their first ``name_columns`` cells name the row.
    - ``ordinals``: the numbers of these rows in the table, from 1.
    - ``answers``: the texts that answer the question.
    - ``is_value``: whether the answer is a ranked number, as for "What is the highest price?".
    - ``targets``, ``asked``: indexes of the columns to show, and of the columns that the question names.
    - ``is_markup``: whether the cells are Markdown.
    - ``is_ordered``: whether the rows are sorted by the first target, highest first, or lowest first if ``is_least``.
    """

    operation: TableOperation
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
        return self.operation is not TableOperation.ROWS


@dataclass(frozen=True, slots=True)
class TableDocument:
    id: int
    title: str
    url: str
    collection: str


@dataclass(frozen=True, slots=True)
class ShownTable:
    """The part of a table that the API returns, to show below an answer.

    The first ``matched`` of ``rows`` meet the ``conditions``. The whole table has ``row_count`` rows. ``sorted_by`` is
    the name of a column, or empty.
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
