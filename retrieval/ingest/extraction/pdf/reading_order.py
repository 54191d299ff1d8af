"""The order in which the lines of a printed page are read. PURE.

A file's own order is kept where it can be right: most programs write a page as it is read. Where lines jump up the page
other than into the next column, or where two columns are written row by row, they are ordered by their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from retrieval.ingest.extraction.pdf.printed import PrintedLine, join_lines

# In this part of a page's height at its top and bottom stand running titles, which many programs write first or last.
_EDGE = 0.08
_FEWEST_LINES = 4
_PROSE_CHARACTERS = 15
_MOST_CROSSING = 0.5
_LEVEL = 0.5


def order_lines(lines: Sequence[PrintedLine], height: float) -> list[PrintedLine]:
    """``lines`` as they are read, the parts of a row joined unless a column ends between them."""
    gutter = _find_gutter(lines)
    if _jumps_up(lines, height) or (gutter is not None and _alternates(lines, gutter)):
        lines = _by_place(list(lines))
    return _join_rows(lines)


def _join_rows(lines: Sequence[PrintedLine]) -> list[PrintedLine]:
    joined: list[PrintedLine] = []
    for line in lines:
        above = joined[-1] if joined else None
        if (
            above is not None
            and line.follows
            and above.right <= line.left + line.size
            and abs(above.middle - line.middle) < _LEVEL * max(above.size, line.size)
        ):
            joined[-1] = join_lines(above, line)
        else:
            joined.append(line)
    return joined


def _jumps_up(lines: Sequence[PrintedLine], height: float) -> bool:
    body = [line for line in lines if _EDGE * height < line.middle < (1 - _EDGE) * height]
    return any(
        below.bottom <= line.top + 1 and below.left < line.right - line.size
        for line, below in pairwise(body)
        if not below.follows
    )


def _find_gutter(lines: Sequence[PrintedLine]) -> float | None:
    """Where the first column of prose ends and the next begins; None on a page of one column."""
    prose = [line for line in lines if len(line.text) >= _PROSE_CHARACTERS]
    best: tuple[int, float] | None = None
    for left in {round(line.left) for line in prose}:
        place = left - 2.0
        before = [line for line in prose if line.right <= place]
        after = [line for line in prose if line.left >= place]
        crossing = len(prose) - len(before) - len(after)
        fewest = min(len(before), len(after))
        if fewest < _FEWEST_LINES or crossing > _MOST_CROSSING * (len(before) + len(after)):
            continue
        # Columns stand beside each other.
        lowest = min(max(line.bottom for line in before), max(line.bottom for line in after))
        if lowest <= max(min(line.top for line in before), min(line.top for line in after)):
            continue
        score = fewest - crossing
        if best is None or (score, -place) > (best[0], -best[1]):
            best = score, place
    return best[1] if best else None


def _alternates(lines: Sequence[PrintedLine], gutter: float) -> bool:
    """Whether prose in columns is written row by row, as no table is: lines as long as the column, that go on below."""
    first = [line for line in lines if line.right <= gutter]
    second = [line for line in lines if line.left >= gutter]
    switches = sum(1 for before, line in pairwise(lines) if line.follows and before.right <= gutter <= line.left)
    if switches < max(_FEWEST_LINES, 0.5 * min(len(first), len(second))):
        return False
    return all(_is_prose(column) for column in (first, second))


def _is_prose(column: Sequence[PrintedLine]) -> bool:
    left, right = min(line.left for line in column), max(line.right for line in column)
    full = [line for line in column if line.right - line.left > 0.8 * (right - left)]
    goes_on = [below for line, below in pairwise(column) if line.text[-1:].isalpha() or line.text[-1:] in ",-"]
    return len(full) >= 0.6 * len(column) and len(goes_on) >= 0.5 * len(column)


def _by_place(lines: list[PrintedLine]) -> list[PrintedLine]:
    """Column by column between the lines that cross them; else from top to bottom, and in each row from the left."""
    gutter = _find_gutter(sorted(lines, key=lambda line: line.top))
    if gutter is None:
        return _by_rows(lines)
    ordered: list[PrintedLine] = []
    crossing = sorted((line for line in lines if line.left < gutter < line.right), key=lambda line: line.top)
    columns = [line for line in lines if not line.left < gutter < line.right]
    for line in crossing:
        above = [other for other in columns if other.middle < line.middle]
        columns = [other for other in columns if other.middle >= line.middle]
        ordered += _both_columns(above, gutter)
        line.follows = False
        ordered.append(line)
    return ordered + _both_columns(columns, gutter)


def _both_columns(lines: list[PrintedLine], gutter: float) -> list[PrintedLine]:
    first = [line for line in lines if line.right <= gutter]
    second = [line for line in lines if line.right > gutter]
    return (_by_place(first) if first else []) + (_by_place(second) if second else [])


def _by_rows(lines: list[PrintedLine]) -> list[PrintedLine]:
    rows: list[list[PrintedLine]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if rows and line.middle - rows[-1][0].middle < _LEVEL * min(line.size, rows[-1][0].size):
            rows[-1].append(line)
        else:
            rows.append([line])
    ordered: list[PrintedLine] = []
    for row in rows:
        row.sort(key=lambda line: line.left)
        for at, line in enumerate(row):
            line.follows = at > 0
        ordered += row
    return ordered
