"""Tables with merged cells as rows of equal width, each cell in its column. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.tables.cells import is_nothing, read_boolean, read_date, read_quantity

# A cell claims no more columns than this.
_WIDEST = 1_000
_MOST_HEADER_ROWS = 3
_AROUND = " \t()[]{}<>≤≥~≈±*†‡§^#+"
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")
_SPACED = re.compile(r"(?<=\d)[\s\u00a0\u202f](?=\d{3}(?!\d))")
# Between the ends of an interval, or two figures in one cell.
_PAIR = re.compile(r"[,;/±|–]|\bto\b|\s[-−(]")


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell that takes the place of several. ``goes_on`` says that it is the rest of the one above it."""

    text: str
    across: int = 1
    down: int = 1
    goes_on: bool = False


def spread(rows: Sequence[Sequence[TableCell]]) -> list[list[str]]:
    """The texts by row and column, the names of the columns in one row.

    What is merged over rows stands in each of them; over columns, in the first one, and before the name of each where
    it is a name of several.
    """
    grid: list[list[str]] = []
    heads: list[list[str]] = []
    # What hangs down from the rows above, by column: the rows that are left, and the text.
    hanging: dict[int, tuple[int, str]] = {}
    header_rows = _count_header(rows)
    for row in rows:
        texts: list[str] = []
        names: list[str] = []
        left = list(row)
        last = max(hanging, default=-1)
        while left or len(texts) <= last:
            column = len(texts)
            if column in hanging:
                rest, text = hanging.pop(column)
                if rest > 1:
                    hanging[column] = rest - 1, text
                texts.append(text)
                names.append(text)
            elif left:
                cell = left.pop(0)
                text = grid[-1][column] if cell.goes_on and grid and column < len(grid[-1]) else cell.text
                for place in range(max(1, min(cell.across, _WIDEST - column))):
                    said = text if place == 0 else ""
                    if cell.down > 1:
                        hanging[column + place] = cell.down - 1, said
                    texts.append(said)
                    names.append(text)
            else:
                texts.append("")
                names.append("")
        grid.append(texts)
        heads.append(names)
    if header_rows > 1:
        width = max(map(len, heads[:header_rows]))
        joined = [
            " ".join(dict.fromkeys(row[column] for row in heads[:header_rows] if column < len(row) and row[column]))
            for column in range(width)
        ]
        return [joined, *grid[header_rows:]]
    return grid


def _count_header(rows: Sequence[Sequence[TableCell]]) -> int:
    """How many rows name the columns: more than one where a name stands over several columns, but not over all."""
    count = 0
    while count < min(_MOST_HEADER_ROWS, len(rows) - 1):
        row = rows[count]
        if not (len(row) > 1 and any(cell.across > 1 for cell in row)):
            break
        count += 1
    below = rows[count] if 0 < count < len(rows) else ()
    return count + 1 if count and not any(cell.text and is_value(cell.text) for cell in below) else 1


def is_value(text: str) -> bool:
    """Whether a cell holds a number, a day, a time, yes or no, or a sign that there is none."""
    plain = text.strip(_AROUND)
    if not any(map(str.isalnum, plain)) or is_nothing(plain):
        return True
    plain = _SPACED.sub("", plain)
    # A letter alone may be a name as well as an answer.
    is_answer = len(plain) > 1 and read_boolean(plain) is not None
    if is_answer or read_quantity(plain) or read_date(plain) or _TIME.fullmatch(plain):
        return True
    parts = [part.strip(_AROUND) for part in _PAIR.split(plain)]
    return len(parts) > 1 and all(part and read_quantity(part) for part in parts)
