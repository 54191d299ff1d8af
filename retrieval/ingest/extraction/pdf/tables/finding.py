"""Tables of printed pages: by their rules, or by the places of their cells. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from retrieval.ingest.extraction.pdf.printed import PrintedLine
from retrieval.ingest.extraction.pdf.tables.aligned import find_aligned_tables
from retrieval.ingest.extraction.pdf.tables.cells import looks_like_drawing
from retrieval.ingest.extraction.pdf.tables.columns import find_rows
from retrieval.ingest.extraction.pdf.tables.rows import FoundTable, join_nameless, text_of, write_rows
from retrieval.ingest.extraction.pdf.tables.ruled import read_between_rules, read_grid
from retrieval.ingest.extraction.pdf.tables.rules import NEAR, RuledLine, RuledLines, find_regions

_LONGEST_CELL = 400
_FULL_SHARE = 0.5
_MOST_WORDS_ALONE = 5
_FEWEST_ROW_RULES = 3


def set_tables(lines: Sequence[PrintedLine], rules: RuledLines) -> list[PrintedLine]:
    """``lines`` with those of each table as rows in Markdown's form, where the first of them stood."""
    found = list(lines)
    for level, upright in find_regions(rules):
        if not upright and len(level) > _FEWEST_ROW_RULES:
            level = _add_outer_rows(level, found)
        top, bottom = level[0].at, level[-1].at
        left, right = min(rule.start for rule in level), max(rule.end for rule in level)
        inside = [
            line
            for line in found
            if not line.is_row
            and top - NEAR < line.middle < bottom + NEAR
            and left - NEAR < (line.left + line.right) / 2 < right + NEAR
        ]
        table = None
        if inside:
            table = read_grid(inside, level, upright) if upright else read_between_rules(inside, level)
        if table is not None and _is_table(table):
            found = _replace(found, table)
    for table in find_aligned_tables([line for line in found if not line.is_row], rules.level):
        found = _replace(found, table)
    return join_nameless(found)


def _add_outer_rows(level: Sequence[RuledLine], lines: Sequence[PrintedLine]) -> list[RuledLine]:
    """The rules of a table each of whose rows has one below it, with one more above its header and below its last row
    where these have none."""
    heights = [below.at - above.at for above, below in pairwise(level)]
    left, right = level[0].start - NEAR, level[0].end + NEAR
    rows = find_rows([line for line in lines if not line.is_row and left < line.left and line.right < right])
    inside = [len(row.pieces) for row in rows if level[0].at < row.middle < level[-1].at]
    if not inside or len(inside) > 2 * len(heights):
        return list(level)
    usual = median(inside)
    near = max(heights)
    above = [row for row in rows if 0 < level[0].at - row.middle < near and len(row.pieces) >= usual - 1 > 0]
    below = [row for row in rows if 0 < row.middle - level[-1].at < near and len(row.pieces) >= usual - 1 > 0]
    first = [RuledLine(above[-1].middle - above[-1].size, left, right)] if above else []
    last = [RuledLine(below[0].middle + below[0].size, left, right)] if below else []
    return [*first, *level, *last]


def _is_table(table: FoundTable) -> bool:
    cells = [cell for row in [table.header, *table.rows] for cell in row]
    if looks_like_drawing([[text_of(cell) for cell in row] for row in [table.header, *table.rows]]):
        return False
    if len(table.rows) == 1 and all(len(text_of(cell).split()) > _MOST_WORDS_ALONE for cell in table.rows[0]):
        return False
    return (
        len(table.header) >= 2
        and bool(table.rows)
        and sum(map(bool, cells)) >= _FULL_SHARE * len(cells)
        and sum(map(bool, table.header)) >= 2
        and max(map(len, cells)) <= _LONGEST_CELL
    )


def _replace(lines: Sequence[PrintedLine], table: FoundTable) -> list[PrintedLine]:
    taken = {id(line) for line in table.lines}
    at = next(at for at, line in enumerate(lines) if id(line) in taken)
    written = write_rows(table.header, table.rows, median(line.size for line in table.lines))
    return [
        *(line for line in lines[:at] if id(line) not in taken),
        *written,
        *(line for line in lines[at:] if id(line) not in taken),
    ]
