"""How much of the tables of a file was found: cell by cell. PURE."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval.tables.table_reading import read_tables
from retrieval.text.extracted import ExtractedText

Rows = Sequence[Sequence[str]]
# A table of which a smaller share of the cells is right was not found.
FOUND_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class TableScore:
    """``cells`` are expected, ``right`` of them stand where they should, and ``written`` were found, empty ones apart.
    ``false`` are tables that stand for none of those expected, each with its first row."""

    name: str
    expected: int
    found: int
    cells: int
    right: int
    written: int
    false: tuple[str, ...]


def read_expected(path: Path) -> list[Rows]:
    """The tables that are to be found in the file at ``path``: ``NAME.csv``, or ``NAME.1.csv``, ``NAME.2.csv``, …"""
    files = [path.with_suffix(".csv")] + [path.with_suffix(f".{number}.csv") for number in range(1, 100)]
    tables: list[Rows] = []
    for file in files:
        if file.exists():
            with file.open(newline="", encoding="utf-8-sig") as lines:
                tables.append([row for row in csv.reader(lines) if any(row)])
    return tables


def found_tables(extracted: ExtractedText) -> list[Rows]:
    """The tables of a text, each with the names of its columns as its first row."""
    text = extracted.text
    return [
        [
            ["" if column.name == f"column {at}" else column.name for at, column in enumerate(table.columns, start=1)],
            *([text[start:end].replace(r"\|", "|") for start, end in row.cells] for row in table.rows),
        ]
        for table in read_tables(extracted)
    ]


def score_tables(name: str, expected: Sequence[Rows], found: Sequence[Rows]) -> TableScore:
    """Each table that is expected beside the one with the most cells right."""
    left = list(found)
    right = cells = met = 0
    for table in expected:
        cells += sum(map(len, table))
        scores = [count_right(table, other) for other in left]
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


def count_right(expected: Rows, found: Rows) -> int:
    """How many cells stand in their row and their column; rows are compared in order, so that one that is missing costs
    its own cells and not those below it."""
    # The longest common subsequence, with the cells that two rows share as its weight.
    best = [0] * (len(found) + 1)
    for row in expected:
        above, best = best, [0]
        for at, other in enumerate(found):
            same = sum(_squeeze(cell) == _squeeze(there) for cell, there in zip(row, other, strict=False))
            best.append(max(above[at + 1], best[at], above[at] + same))
    return best[-1]


def _squeeze(cell: str) -> str:
    """Without white space: where a line is broken does not count."""
    return "".join(cell.split()).replace("−", "-")
