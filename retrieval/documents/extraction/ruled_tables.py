"""Find tables by their drawn lines (rules): grids, and rows between horizontal rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from retrieval.documents.extraction.grouping import group_consecutive
from retrieval.documents.extraction.printed import Box, PrintedLine
from retrieval.documents.extraction.table_rows import (
    MOST_COLUMNS,
    Cell,
    FoundTable,
    PrintedRow,
    build_grid,
    build_table_from_grid,
    find_columns,
    find_rows,
    group_rows,
    join_cells,
    text_of,
)

_NEAR = 3.0
_FEWEST_RULES = 3
_SHORTEST_RULE = 40
_DRAWN = 0.7
_FULL_SHARE = 0.5
_LONGEST_CELL = 400
_MOST_BANDS = 500
# Largest distance between two lines of a row, in font sizes.
_TIGHT = 1.5


@dataclass(frozen=True, slots=True)
class RuledLine:
    """A horizontal or vertical line that is drawn on a page, from ``start`` to ``end``.

    ``at`` is its distance from the top of the page (horizontal) or from the left (vertical).
    """

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class RuledLines:
    level: Sequence[RuledLine]
    upright: Sequence[RuledLine]


def find_ruled_tables(lines: Sequence[PrintedLine], rules: RuledLines) -> list[FoundTable]:
    """Return the tables that drawn lines (``rules``) show."""
    tables: list[FoundTable] = []
    rows = find_rows(lines)
    for level, upright in _find_table_regions(rules):
        inside = _find_rows_within(rows, level)
        table = _read_grid(inside, level, upright) if inside and upright else None
        if inside and table is None:
            table = _read_table_between_lines(rows, inside, level)
        if table is not None and _is_plausible_table(table):
            tables.append(table)
            taken = {id(line) for line in table.lines}
            rows = find_rows([line for row in rows for line in row.lines if id(line) not in taken])
    return tables


def _is_plausible_table(table: FoundTable) -> bool:
    cells = [text_of(cell) for row in [table.header, *table.rows] for cell in row]
    return (
        len(table.header) >= 2
        and bool(table.rows)
        and sum(map(bool, cells)) >= _FULL_SHARE * len(cells)
        and sum(bool(text_of(cell)) for cell in table.header) >= 2
        and max(map(len, cells)) <= _LONGEST_CELL
    )


def gather_rules(boxes: Sequence[Box]) -> RuledLines:
    level: list[RuledLine] = []
    upright: list[RuledLine] = []
    for left, top, right, bottom in boxes:
        if bottom - top > _NEAR:
            upright += [RuledLine(left, top, bottom), RuledLine(right, top, bottom)]
        if right - left > _NEAR:
            level += [RuledLine(top, left, right), RuledLine(bottom, left, right)]
    return RuledLines(_merge_collinear_lines(level), _merge_collinear_lines(upright))


def _merge_collinear_lines(rules: Sequence[RuledLine]) -> list[RuledLine]:
    merged: list[RuledLine] = []
    for row in group_consecutive(
        sorted(rules, key=lambda rule: rule.at), lambda row, rule: rule.at - row[0].at <= _NEAR
    ):
        for rule in sorted(row, key=lambda rule: rule.start):
            last = merged[-1] if merged else None
            if last is not None and abs(last.at - row[0].at) < 0.01 and rule.start <= last.end + _NEAR:
                merged[-1] = RuledLine(last.at, last.start, max(last.end, rule.end))
            else:
                merged.append(RuledLine(row[0].at, rule.start, rule.end))
    return merged


_Region = tuple[list[RuledLine], list[RuledLine]]


def _find_table_regions(rules: RuledLines) -> list[_Region]:
    """Return groups of drawn lines (rules) that may be the borders of a table."""
    parts: list[_Region] = [([rule], []) for rule in rules.level]
    for rule in rules.upright:
        met = [part for part in parts if any(_do_ruled_lines_meet(level, rule) for level in part[0])]
        if met:
            parts = [part for part in parts if not any(part is other for other in met)]
            parts.append(
                ([level for part in met for level in part[0]], [*(up for part in met for up in part[1]), rule])
            )
    regions = [
        (sorted(level, key=lambda rule: rule.at), upright)
        for level, upright in parts
        if len(level) >= _FEWEST_RULES and len(upright) >= _FEWEST_RULES
    ]
    groups: list[list[RuledLine]] = []
    # Some tables have no upright rules. In others, only every second row is shaded, so the boxes do not touch. The
    # level rules of such a table start and end at the same x positions.
    alone = [rule for level, upright in parts if len(upright) < _FEWEST_RULES for rule in level]
    for rule in sorted(alone, key=lambda rule: rule.at):
        if rule.end - rule.start < _SHORTEST_RULE:
            continue
        for rules_below in groups:
            if max(abs(rules_below[0].start - rule.start), abs(rules_below[0].end - rule.end)) < 2 * _NEAR:
                rules_below.append(rule)
                break
        else:
            groups.append([rule])
    return regions + [(part, []) for part in groups if len(part) >= _FEWEST_RULES]


def _do_ruled_lines_meet(level: RuledLine, upright: RuledLine) -> bool:
    return (
        level.start - _NEAR <= upright.at <= level.end + _NEAR
        and upright.start - _NEAR <= level.at <= upright.end + _NEAR
    )


def _find_rows_within(rows: Sequence[PrintedRow], level: Sequence[RuledLine]) -> list[PrintedRow]:
    top, bottom = level[0].at - _NEAR, level[-1].at + _NEAR
    left, right = min(rule.start for rule in level) - _NEAR, max(rule.end for rule in level) + _NEAR
    inside = []
    for row in rows:
        pieces = [piece for piece in row.pieces if left < piece.middle_x < right]
        if pieces and top < row.middle_y < bottom:
            own = {id(piece.line) for piece in row.pieces if piece not in pieces}
            inside.append(PrintedRow(pieces, [line for line in row.lines if id(line) not in own]))
    return inside


def _merge_near_positions(values: Sequence[float]) -> list[float]:
    return [near[0] for near in group_consecutive(sorted(values), lambda near, value: value - near[0] <= _NEAR)]


def _find_interval_index(value: float, sides: Sequence[float]) -> int:
    return next((at for at, side in enumerate(sides[1:-1]) if value < side), len(sides) - 2)


def _read_grid(
    rows: Sequence[PrintedRow], level: Sequence[RuledLine], upright: Sequence[RuledLine]
) -> FoundTable | None:
    """Return the table between horizontal (``level``) and vertical (``upright``) rules; None if there is no table.

    The text of a cell over several rows is repeated in each row.
    """
    ends = [min(rule.start for rule in level), max(rule.end for rule in level)]
    sides, heights = (
        _merge_near_positions([*ends, *(rule.at for rule in upright)]),
        _merge_near_positions([rule.at for rule in level]),
    )
    width, height = len(sides) - 1, len(heights) - 1
    if not (2 <= width <= MOST_COLUMNS and 1 <= height <= _MOST_BANDS):
        return None
    if _do_ruled_lines_cross_words(rows, upright):
        return None
    merged = _assign_cell_numbers(sides, heights, level, upright)
    parts: dict[int, list[Cell]] = {}
    taken: list[list[PrintedLine]] = [[] for _ in range(height)]
    for row in rows:
        at = _find_interval_index(row.middle_y, heights)
        taken[at] += row.lines
        for number, cell in _split_row_into_cells(row, sides, merged[at]):
            parts.setdefault(number, []).append(cell)
    cells = {number: join_cells(found) for number, found in parts.items()}
    # A first row with one cell over all columns is a title.
    first = 0
    while first < height - 1 and len(set(merged[first])) == 1:
        first += 1
    names = _find_header_end(merged, first)
    above = [dict.fromkeys(merged[row][at] for row in range(first, names)) for at in range(width)]
    header = [join_cells([cells.get(number, []) for number in numbers]) for numbers in above]
    body = []
    for row_at in range(names, height):
        own = merged[row_at]
        body.append([cells.get(own[at], []) if at == 0 or own[at] != own[at - 1] else [] for at in range(width)])
    filled = [row for row in body if any(map(text_of, row))]
    lines = [line for row_lines in taken[first:] for line in row_lines]
    return FoundTable(lines, header, filled) if lines and filled else None


def _do_ruled_lines_cross_words(rows: Sequence[PrintedRow], upright: Sequence[RuledLine]) -> bool:
    crossed = sum(
        any(
            rule.start < row.middle_y < rule.end and box[0] + 1 < rule.at < box[2] - 1 and sign != " "
            for rule in upright
            for piece in row.pieces
            for sign, box in piece.cell
        )
        for row in rows
    )
    return crossed > 0.1 * len(rows)


def _split_row_into_cells(
    row: PrintedRow, sides: Sequence[float], cell_numbers: Sequence[int]
) -> list[tuple[int, Cell]]:
    real = [
        sides[0],
        *(side for at, side in enumerate(sides[1:-1]) if cell_numbers[at] != cell_numbers[at + 1]),
        sides[-1],
    ]
    parts = [cell for piece in row.pieces for cell in _split_cell_at_sides(piece.cell, real) if text_of(cell)]
    return [(cell_numbers[_find_interval_index((cell[0][1][0] + cell[-1][1][2]) / 2, sides)], cell) for cell in parts]


def _split_cell_at_sides(cell: Cell, sides: Sequence[float]) -> list[Cell]:
    found: list[tuple[int, Cell]] = []
    for character, box in cell:
        column = _find_interval_index((box[0] + box[2]) / 2, sides)
        if not found or found[-1][0] != column:
            if character == " ":
                continue
            found.append((column, []))
        found[-1][1].append((character, box))
    return [part for _, part in found]


def _assign_cell_numbers(
    sides: Sequence[float], heights: Sequence[float], level: Sequence[RuledLine], upright: Sequence[RuledLine]
) -> list[list[int]]:
    """Return the number of the cell at each row and column. Cells without a rule between them share a number."""
    width, height = len(sides) - 1, len(heights) - 1
    parents = list(range(width * height))

    def find_root(place: int) -> int:
        while parents[place] != place:
            place = parents[place]
        return place

    for row in range(height):
        for column in range(width):
            place = row * width + column
            below, beside = heights[row + 1], sides[column + 1]
            if row + 1 < height and not _is_drawn(level, below, sides[column], beside):
                parents[find_root(place + width)] = find_root(place)
            if column + 1 < width and not _is_drawn(upright, beside, heights[row], below):
                parents[find_root(place + 1)] = find_root(place)
    return [[find_root(row * width + column) for column in range(width)] for row in range(height)]


def _is_drawn(rules: Sequence[RuledLine], at: float, start: float, end: float) -> bool:
    covered = sum(max(0.0, min(rule.end, end) - max(rule.start, start)) for rule in rules if abs(rule.at - at) <= _NEAR)
    return covered >= _DRAWN * (end - start)


def _find_header_end(merged: Sequence[Sequence[int]], first: int) -> int:
    end = first + 1
    while end < len(merged):
        above = merged[end - 1]
        is_over_several = len(set(above)) < len(above)
        goes_down = any(cell == below for cell, below in zip(above, merged[end], strict=True))
        if not (is_over_several or goes_down) or end - first >= 4:
            break
        end += 1
    return end if end < len(merged) else first + 1


def _read_table_between_lines(
    page: Sequence[PrintedRow], rows: Sequence[PrintedRow], level: Sequence[RuledLine]
) -> FoundTable | None:
    """Return the table between horizontal rules; None if there is no table. The header is above the second rule."""
    heights = _merge_near_positions([rule.at for rule in level])
    bands = [[row for row in rows if top < row.middle_y <= end] for top, end in pairwise(heights)]
    bands = [band for band in bands if band]
    if not bands:
        return None
    is_row_each = len(bands) >= _FEWEST_RULES - 1 and len(rows) <= 3 * len(bands) and len(heights) > _FEWEST_RULES
    if is_row_each:
        left, right = level[0].start - _NEAR, level[0].end + _NEAR
        usual = median(len({round(piece.left) for row in band for piece in row.pieces}) for band in bands)
        outer = [row for row in page if all(left < piece.left and piece.right < right for piece in row.pieces)]
        above = _find_rows_next_to(outer[::-1], heights[0], usual)[::-1]
        below = _find_rows_next_to(outer, heights[-1], usual)
        bands = [band for band in (above, *bands, below) if band]
    columns = find_columns([row for band in bands for row in band])
    if not 2 <= len(columns) <= MOST_COLUMNS:
        return None
    if is_row_each and sum(_has_several_rows(band, len(columns)) for band in bands) <= len(bands) / 4:
        return build_table_from_grid(build_grid(bands, columns, 1))
    if len(bands) < 2:
        return None
    body = group_rows([row for band in bands[1:] for row in band], columns)
    return build_table_from_grid(build_grid([[row] for row in bands[0]] + body, columns, len(bands[0])))


def _find_rows_next_to(rows: Sequence[PrintedRow], rule: float, pieces: float) -> list[PrintedRow]:
    found: list[PrintedRow] = []
    is_above = bool(rows) and rows[0].middle_y > rows[-1].middle_y
    for row in rows:
        distance = rule - row.middle_y if is_above else row.middle_y - rule
        last = found[-1].middle_y if found else rule
        if distance > 0 and abs(row.middle_y - last) < (_TIGHT if found else 2) * row.size:
            found.append(row)
        elif found:
            break
    return found if len({round(piece.left) for row in found for piece in row.pieces}) >= max(2, pieces - 1) else []


def _has_several_rows(band: Sequence[PrintedRow], width: int) -> bool:
    return sum(len(row.pieces) >= max(2, 0.8 * width) for row in band) > 1
