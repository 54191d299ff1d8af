"""A table with its rows, and with the words by which a question can name its cells and columns."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from retrieval.tables.lexicon import JOINING, ORDINALS, SUMMARIES
from retrieval.tables.names import (
    YEAR,
    keep_letters_and_digits,
    make_comparison_key,
    make_singular,
    split_name,
    tokenize,
)
from retrieval.tables.table_reading import LONGEST_LABEL, CellValue, Column, is_missing_value
from retrieval.text.word_lists import read_words

if TYPE_CHECKING:
    from retrieval.types import Passage

_NOTE = re.compile(r"(?<!\s)\s*+[(\[][^()\[\]]*+[)\]]")
_ELEMENTS = re.compile(r",|;|/|\n|\s&\s|\s·\s|<br ?/?>", re.IGNORECASE)
# A year, but no season such as 2004–05.
_YEAR_IN = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d|\s?[-–/]\s?\d)")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
_LONGEST_SUMMARY = 30
# A question may leave out these words of a column's name: "beer" means beer_servings.
_MEASURES = frozenset(map(make_singular, read_words("tables", "measures")))


@dataclass(frozen=True, slots=True)
class LoadedRow:
    """A row of a table, with one value for each column. None is an empty cell, or a cell that was not loaded."""

    ordinal: int
    values: tuple[CellValue, ...]

    @property
    def is_data_row(self) -> bool:
        texts = (value for value in self.values if isinstance(value, str) and len(value) < _LONGEST_SUMMARY)
        return not any(
            (key := keep_letters_and_digits(_NOTE.sub("", text))) in SUMMARIES or key.startswith("total")
            for text in texts
            if text[:1] in "TtAaSsOoMmCcGg"
        )


def is_empty(value: CellValue) -> bool:
    return value is None or (isinstance(value, str) and is_missing_value(value))


@functools.lru_cache(maxsize=20_000)
def make_cell_lookup_keys(text: str) -> frozenset[str]:
    """Return the normalised texts by which a question can name a cell.

    They are the whole text, the text without notes, and, if the cell is a list, each of its items.
    """
    plain = _NOTE.sub("", text)
    parts = [text, plain, *_ELEMENTS.split(plain), *_ELEMENTS.split(text)]
    return frozenset(key for part in parts if len(part) <= LONGEST_LABEL and (key := make_comparison_key(part)))


def _format_plain(value: CellValue) -> str:
    if is_empty(value):
        return ""
    return f"{value:.0f}" if isinstance(value, float) and value == int(value) else str(value)


def find_years(value: CellValue) -> frozenset[int]:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return frozenset([int(value)]) if value == int(value) and YEAR.fullmatch(str(int(value))) else frozenset()
    if not isinstance(value, str):
        return frozenset()
    return frozenset([int(value[:4])]) if DAY.fullmatch(value) else frozenset(map(int, _YEAR_IN.findall(value)))


@dataclass(frozen=True, eq=False)
class LoadedTable:
    """A table at ``text[start:end]`` of its document. A question's words are looked up in ``named_rows``.

    ``named_rows`` has all rows of a short table. If ``is_long`` is true, it has the first rows and those with a cell
    that the question names.
    ``read_rows(columns)`` returns all rows with these columns' values.
    """

    pk: int
    document_id: int
    start: int
    end: int
    caption: str
    columns: tuple[Column, ...]
    row_count: int
    read_rows: Callable[[Iterable[int]], Iterable[LoadedRow]]
    named_rows: Sequence[LoadedRow]
    is_long: bool = False

    def overlaps(self, passage: Passage) -> bool:
        return self.document_id == passage.document_id and self.start < passage.end and passage.start < self.end

    @cached_property
    def caption_words(self) -> frozenset[str]:
        return frozenset(make_singular(token.norm) for token in tokenize(self.caption))

    @cached_property
    def columns_by_cell(self) -> Mapping[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for row in self.named_rows:
            for at, value in enumerate(row.values):
                if self.columns[at].kind == "text" and isinstance(value, str) and not is_empty(value):
                    for key in make_cell_lookup_keys(value):
                        found.setdefault(key, set()).add(at)
        return {key: frozenset(columns) for key, columns in found.items()}

    @cached_property
    def columns_by_name(self) -> Mapping[tuple[str, ...], frozenset[int]]:
        """A map from names, as sorted words ("gold", "medal"), to the indexes of their columns."""
        whole: dict[tuple[str, ...], set[int]] = {}
        partly: dict[tuple[str, ...], set[int]] = {}
        for at, column in enumerate(self.columns):
            if not self.list_column_words(at):
                continue
            words = self.list_column_words(at)
            whole.setdefault(tuple(sorted(words)), set()).add(at)
            while len(words) > 1 and (words[0] in _MEASURES or not words[0].isascii()):
                words = words[1:]  # Questions leave out such a first word, as in "No. of wins" or "Σ points".
                whole.setdefault(tuple(sorted(words)), set()).add(at)
            if len(words) > 1 and words[-1] in _MEASURES:
                partly.setdefault(tuple(sorted(words[:-1])), set()).add(at)
            if len(words) > 1 and column.kind != "number":
                partly.setdefault((words[-1],), set()).add(at)
        names = {words: found for words, found in partly.items() if len(found) == 1} | whole
        return {words: frozenset(columns) for words, columns in names.items()}

    @cached_property
    def data_row_count(self) -> int:
        """The number of rows, not counting rows of totals.

        A long table is not read completely, so its rows of totals are counted too.
        """
        return self.row_count if self.is_long else sum(row.is_data_row for row in self.named_rows)

    @cached_property
    def subject_column(self) -> int | None:
        """The first text column, if its cells are filled and all different; otherwise None."""
        texts = (
            at for at, column in enumerate(self.columns) if column.kind == "text" and not self.is_ordinal_column(at)
        )
        first = next(texts, None)
        return first if first is not None and self.has_unique_cells(first) else None

    @cached_property
    def rows_by_word(self) -> Mapping[str, Sequence[int]]:
        """A map from words, in the singular, to the ordinals of the ``named_rows`` that contain them."""
        found: dict[str, list[int]] = {}
        for row in self.named_rows:
            for word in {make_singular(token.norm) for value in row.values for token in tokenize(_format_plain(value))}:
                found.setdefault(word, []).append(row.ordinal)
        return found

    @cached_property
    def row_name_columns(self) -> Sequence[int]:
        """The columns that name a row: ``subject_column``, or else the first column.

        If its cells are codes, the next text column is added.
        """
        first = self.subject_column if self.subject_column is not None else 0
        codes = [row.values[first] for row in self.named_rows]
        if not all(isinstance(code, str) and any(map(str.isdigit, code)) for code in codes):
            return [first]
        texts = (at for at in range(first + 1, len(self.columns)) if self.columns[at].kind == "text")
        return [first, *islice(texts, 1)]

    def has_unique_cells(self, at: int) -> bool:
        seen: set[CellValue] = set()
        for row in self.read_rows([at]):
            if row.is_data_row:
                if is_empty(row.values[at]) or row.values[at] in seen:
                    return False
                seen.add(row.values[at])
        return True

    @cached_property
    def year_columns(self) -> frozenset[int]:
        columns = set(range(len(self.columns)))
        for row in self.named_rows:
            if row.is_data_row:
                columns = {at for at in columns if len(find_years(row.values[at])) == 1}
        return frozenset(columns)

    def is_ordinal_column(self, at: int) -> bool:
        words = self.list_column_words(at)
        return not words or words[-1] in ORDINALS or "#" in self.columns[at].name or at in self.year_columns

    @cached_property
    def rankable_columns(self) -> Sequence[int]:
        """The columns of numbers that can be ranked: all except ranks, identifying numbers and years."""
        numbers = (at for at, column in enumerate(self.columns) if column.kind == "number")
        return [at for at in numbers if not self.is_ordinal_column(at)]

    @cached_property
    def day_columns(self) -> Sequence[int]:
        found = [at for at, column in enumerate(self.columns) if column.kind == "date"]
        return found or sorted(self.year_columns)

    def list_column_words(self, at: int) -> Sequence[str]:
        """Return the words of a column's name in singular, without its unit and words such as "of"."""
        return self._column_words[at]

    @cached_property
    def _column_words(self) -> Sequence[Sequence[str]]:
        return [self._find_column_words(at) for at in range(len(self.columns))]

    def _find_column_words(self, at: int) -> list[str]:
        column = self.columns[at]
        if column.name == f"column {at + 1}":
            return []
        words = split_name(_NOTE.sub("", column.name))
        if len(words) > 1 and words[-1] == column.unit:
            words = words[:-1]
        return [normalize_column_word(word) for word in words if word not in JOINING]


_SAME_WORDS = {"percentag": "percent", "pct": "percent"} | dict.fromkeys(read_words("tables", "nations"), "nation")


def normalize_column_word(word: str) -> str:
    """Return a form that is equal for singular, plural and synonyms, to compare questions with column names."""
    found = make_singular(word)
    return _SAME_WORDS.get(found, found)
