"""Score how many cells of a file's tables were found."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval.tables.table_reading import read_tables
from retrieval.text.extracted import ExtractedText

Rows = Sequence[Sequence[str]]
FOUND_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class TableScore:
    """The score of a file with tables, in numbers of tables or cells.

    - ``expected``: the expected tables.
    - ``found``: the expected tables whose share of right cells is at least FOUND_SHARE.
    - ``cells``: the cells in the expected tables.
    - ``right``: the cells that were found in the right row and column.
    - ``written``: the non-empty cells in the found tables.
    - ``false``: the first rows of the found tables that match no expected table.
    """

    name: str
    expected: int
    found: int
    cells: int
    right: int
    written: int
    false: tuple[str, ...]


def read_expected_tables(path: Path) -> list[Rows]:
    """Read the expected tables of a file from ``NAME.csv``, ``NAME.1.csv``, ``NAME.2.csv`` etc. in its folder."""
    files = [path.with_suffix(".csv")] + [path.with_suffix(f".{number}.csv") for number in range(1, 100)]
    tables: list[Rows] = []
    for file in files:
        if file.exists():
            with file.open(newline="", encoding="utf-8-sig") as lines:
                tables.append([row for row in csv.reader(lines) if any(row)])
    return tables


def list_found_tables(extracted: ExtractedText) -> list[Rows]:
    text = extracted.text
    return [
        [
            ["" if column.name == f"column {at}" else column.name for at, column in enumerate(table.columns, start=1)],
            *([text[start:end].replace(r"\|", "|") for start, end in row.cells] for row in table.rows),
        ]
        for table in read_tables(extracted)
    ]


def score_tables(name: str, expected: Sequence[Rows], found: Sequence[Rows]) -> TableScore:
    left = list(found)
    right = cells = met = 0
    for table in expected:
        cells += sum(map(len, table))
        scores = [count_right_cells(table, other) for other in left]
        best = max(range(len(left)), key=scores.__getitem__, default=None)
        if best is None:
            continue
        right += scores[best]
        if scores[best] >= FOUND_SHARE * sum(map(len, table)):
            met += 1
            del left[best]
        elif scores[best]:
            del left[best]
    written = sum(bool(cell) for table in found for row in table for cell in row)
    return TableScore(
        name, len(expected), met, cells, right, written, tuple(" | ".join(table[0])[:80] for table in left)
    )


def count_right_cells(expected: Rows, found: Rows) -> int:
    """Return how many cells of a table are in the right row and column.

    Rows are aligned in order, so a missing row costs only its own cells.
    """
    # This aligns the rows like a longest common subsequence. A pair of aligned rows scores the number of its equal
    # cells.
    best = [0] * (len(found) + 1)
    for row in expected:
        above, best = best, [0]
        for at, other in enumerate(found):
            same = sum(_normalize_cell(cell) == _normalize_cell(there) for cell, there in zip(row, other, strict=False))
            best.append(max(above[at + 1], best[at], above[at] + same))
    return best[-1]


def _normalize_cell(cell: str) -> str:
    return "".join(cell.split()).replace("−", "-")
