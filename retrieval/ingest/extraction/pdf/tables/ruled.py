"""Tables that rules set off: grids, whose missing rules show merged cells, and rows between level rules. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from retrieval.ingest.extraction.pdf.printed import PrintedLine
from retrieval.ingest.extraction.pdf.tables.columns import (
    PrintedColumn,
    PrintedRow,
    find_columns,
    find_rows,
    make_piece,
)
from retrieval.ingest.extraction.pdf.tables.grid import lay_out, read_body, read_header
from retrieval.ingest.extraction.pdf.tables.rows import Cell, FoundTable, Row, join_cells, text_of
from retrieval.ingest.extraction.pdf.tables.rules import NEAR, RuledLine, distinct

_MOST_COLUMNS = 30
_MOST_BANDS = 500
_DRAWN = 0.7
_CROSSED = 0.1
_FEWEST_ROWS = 3


def read_grid(
    lines: Sequence[PrintedLine], level: Sequence[RuledLine], upright: Sequence[RuledLine]
) -> FoundTable | None:
    """The table whose cells stand between rules; what is merged over rows stands in each of them."""
    # The outer sides need not be drawn: there the level rules end.
    ends = [min(rule.start for rule in level), max(rule.end for rule in level)]
    sides, heights = distinct([*ends, *(rule.at for rule in upright)]), distinct([rule.at for rule in level])
    width, height = len(sides) - 1, len(heights) - 1
    if not (2 <= width <= _MOST_COLUMNS and 1 <= height <= _MOST_BANDS):
        return None
    if _is_crossed(lines, upright):
        return None
    merged = _merge_cells(sides, heights, level, upright)
    if (parted := _read_bands(lines, sides, heights, upright)) is not None:
        return parted
    parts: dict[int, list[Cell]] = {}
    tops: list[list[PrintedLine]] = [[] for _ in range(height)]
    for printed in find_rows(lines):
        row = _place(printed.middle, heights)
        tops[row] += printed.lines
        for number, cell in _cut_row(printed, sides, merged[row]):
            parts.setdefault(number, []).append(cell)
    cells = {number: join_cells(found) for number, found in parts.items()}
    # What stands over all columns is a title: it stays as it is.
    first = 0
    while first < height - 1 and len(set(merged[first])) == 1:
        first += 1
    names = _header_rows(merged, first)
    header = [
        join_cells([cells.get(merged[row][column], []) for row in range(first, names)]) for column in range(width)
    ]
    body = []
    for row in range(names, height):
        own = merged[row]
        body.append([cells.get(own[at], []) if at == 0 or own[at] != own[at - 1] else [] for at in range(width)])
    taken = [line for row in tops[first:] for line in row]
    rows = [row for row in body if any(map(text_of, row))]
    return FoundTable(taken, *_drop_empty(header, rows)) if taken and rows else None


def _is_crossed(lines: Sequence[PrintedLine], upright: Sequence[RuledLine]) -> bool:
    """Whether rules go through words, as those of a drawing do."""
    crossed = sum(
        any(
            rule.start < line.middle < rule.end and box[0] + 1 < rule.at < box[2] - 1 and sign != " "
            for rule in upright
            for sign, box in zip(line.text, line.boxes, strict=True)
        )
        for line in lines
    )
    return crossed > _CROSSED * len(lines)


def _cut_row(row: PrintedRow, sides: Sequence[float], own: list[int]) -> list[tuple[int, Cell]]:
    """The parts of a row of text, each with the number of its cell. A cell that seems merged but holds several pieces,
    in a column each, is none: shades of every other row make such grids; ``own`` is put right then."""
    real = [sides[0], *(side for at, side in enumerate(sides[1:-1]) if own[at] != own[at + 1]), sides[-1]]
    parts = [cell for piece in row.pieces for _, cell in _cut_at(piece.cell, real) if text_of(cell)]
    places = [(_place(cell[0][1][0] + 1, sides), _place(cell[-1][1][2] - 1, sides)) for cell in parts]
    for number in set(own):
        columns = [place for place in places if own[place[0]] == number]
        is_within = all(first == last for first, last in columns) and len(set(columns)) == len(columns)
        if own.count(number) > 1 and len(columns) > 1 and is_within:
            for column in [at for at, cell in enumerate(own) if cell == number]:
                own[column] = -1 - len(own) * number - column
    return [(own[_middle_place(cell, sides)], cell) for cell in parts]


def _middle_place(cell: Cell, sides: Sequence[float]) -> int:
    return _place((cell[0][1][0] + cell[-1][1][2]) / 2, sides)


def _merge_cells(
    sides: Sequence[float], heights: Sequence[float], level: Sequence[RuledLine], upright: Sequence[RuledLine]
) -> list[list[int]]:
    """For each place of the grid the number of its cell: places between which no rule is drawn have the same."""
    width, height = len(sides) - 1, len(heights) - 1
    parents = list(range(width * height))

    def root(place: int) -> int:
        while parents[place] != place:
            place = parents[place]
        return place

    for row in range(height):
        for column in range(width):
            place = row * width + column
            below, beside = heights[row + 1], sides[column + 1]
            if row + 1 < height and not _is_drawn(level, below, sides[column], beside):
                parents[root(place + width)] = root(place)
            if column + 1 < width and not _is_drawn(upright, beside, heights[row], below):
                parents[root(place + 1)] = root(place)
    return [[root(row * width + column) for column in range(width)] for row in range(height)]


def _is_drawn(rules: Sequence[RuledLine], at: float, start: float, end: float) -> bool:
    covered = sum(max(0.0, min(rule.end, end) - max(rule.start, start)) for rule in rules if abs(rule.at - at) <= NEAR)
    return covered >= _DRAWN * (end - start)


def _header_rows(merged: Sequence[Sequence[int]], first: int) -> int:
    """Behind which row the header ends: names over several columns have names of each below them."""
    end = first + 1
    while end < len(merged):
        above = merged[end - 1]
        is_over_several = len(set(above)) < len(above)
        goes_down = any(cell == below for cell, below in zip(above, merged[end], strict=True))
        if not (is_over_several or goes_down) or end - first >= 4:
            break
        end += 1
    return end if end < len(merged) else first + 1


def _drop_empty(header: Row, rows: list[Row]) -> tuple[Row, list[Row]]:
    """Without columns that hold nothing, as double rules leave."""
    kept = [at for at in range(len(header)) if any(text_of(row[at]) for row in [header, *rows])]
    return [header[at] for at in kept], [[row[at] for at in kept] for row in rows]


def _read_bands(
    lines: Sequence[PrintedLine], sides: Sequence[float], heights: Sequence[float], upright: Sequence[RuledLine]
) -> FoundTable | None:
    """A grid most of whose rows no rules part: by the places of their text. None when each band is one row."""
    rows = []
    for row in find_rows(lines):
        drawn = [
            side
            for side in sides[1:-1]
            if any(abs(rule.at - side) <= NEAR and rule.start <= row.middle <= rule.end for rule in upright)
        ]
        pieces = [
            make_piece(cell, piece.line)
            for piece in row.pieces
            for _, cell in _cut_at(piece.cell, [sides[0], *drawn, sides[-1]])
        ]
        if found := sorted(filter(None, pieces), key=lambda piece: piece.left):
            rows.append(PrintedRow(found, row.middle, row.size, row.lines))
    first = sum(row.middle < heights[1] for row in rows) if len(heights) > 2 else None
    columns = [PrintedColumn(left, right) for left, right in pairwise(sides)]
    # Between some columns there may be nothing but space.
    most = max((len(row.pieces) for row in rows), default=0)
    full = [row for row in rows if 2 * len(row.pieces) > most]
    spaced = find_columns(full, median(row.size for row in full), slack=len(full) // 10) if full else []
    columns = spaced if len(spaced) > len(columns) else columns
    if len(rows) < max(_FEWEST_ROWS + (first or 0), 1.6 * (len(heights) - 1)):
        return None
    grid = lay_out(rows, columns)
    if first is not None and grid.header_rows < first:
        grid = lay_out(rows, columns, first)
    valued = sum(any(row[column] for column in grid.values) for row in grid.body)
    if valued < 0.75 * len(grid.body):
        return None
    return FoundTable(list(lines), *_drop_empty(read_header(grid), read_body(grid)))


def _cut_at(cell: Cell, sides: Sequence[float]) -> list[tuple[int, Cell]]:
    found: list[tuple[int, Cell]] = []
    for character, box in cell:
        column = _place((box[0] + box[2]) / 2, sides)
        if not found or found[-1][0] != column:
            if character == " ":
                continue
            found.append((column, []))
        found[-1][1].append((character, box))
    return found


def _place(value: float, sides: Sequence[float]) -> int:
    return next((at for at, side in enumerate(sides[1:-1]) if value < side), len(sides) - 2)


def read_between_rules(lines: Sequence[PrintedLine], level: Sequence[RuledLine]) -> FoundTable | None:
    """Rows between level rules of one width. What stands above the second rule is the header."""
    rows = find_rows(lines)
    names = [row for row in rows if row.middle < level[1].at]
    body = rows[len(names) :]
    if not names or not body:
        return None
    size = max(row.size for row in body)
    columns = find_columns(body, size, slack=len(body) // 10)
    if len(columns) < 2:
        columns = find_columns(rows, size, slack=len(body) // 10)
    if not 2 <= len(columns) <= _MOST_COLUMNS:
        return None
    grid = lay_out(rows, columns, len(names))
    found = read_body(grid)
    bands = [[row for row in body if above.at < row.middle <= below.at] for above, below in pairwise(level[1:])]
    if not grid.values and len(bands) >= max(_FEWEST_ROWS, len(body) / 4) and len(bands) < len(body):
        # Each row has a rule of its own.
        found = _join_bands([len(band) for band in bands if band], grid.cells[len(names) :])
    return FoundTable(list(lines), read_header(grid), found)


def _join_bands(counts: Sequence[int], rows: Sequence[Row]) -> list[Row]:
    joined, at = [], 0
    for count in counts:
        joined.append([join_cells(cells) for cells in zip(*rows[at : at + count], strict=True)])
        at += count
    return joined + list(rows[at:])
