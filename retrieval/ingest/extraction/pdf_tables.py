"""Tables of printed pages, by their rules: a grid, or lines above and below rows whose cells are aligned. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from retrieval.ingest.extraction.printed import Box, PrintedLine, PrintedPage, around

_NEAR = 3.0
_FEWEST_RULES = 3
_MOST_RULES = 2_000
_SHORTEST_RULE = 40
_MOST_COLUMNS = 30
_LONGEST_CELL = 400
_FULL_SHARE = 0.5
_LEVEL = 0.5
_COLUMN_GAP = 3.0

_Cell = list[tuple[str, Box]]
_Row = list[_Cell]


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line from ``start`` to ``end``, at the distance ``at`` from the top, or from the left."""

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Rules:
    level: Sequence[Rule]
    upright: Sequence[Rule]


def gather_rules(boxes: Sequence[Box]) -> Rules:
    """The rules that drawn shapes make: thin ones, and the sides of rectangles."""
    level: list[Rule] = []
    upright: list[Rule] = []
    for left, top, right, bottom in boxes[:_MOST_RULES]:
        if bottom - top > _NEAR:
            upright += [Rule(left, top, bottom), Rule(right, top, bottom)]
        if right - left > _NEAR:
            level += [Rule(top, left, right), Rule(bottom, left, right)]
    return Rules(_merge(level), _merge(upright))


def _merge(rules: Sequence[Rule]) -> list[Rule]:
    """Rules that go on where another ends as one."""
    merged: list[Rule] = []
    rows: list[list[Rule]] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if rows and rule.at - rows[-1][0].at <= _NEAR:
            rows[-1].append(rule)
        else:
            rows.append([rule])
    for row in rows:
        for rule in sorted(row, key=lambda rule: rule.start):
            last = merged[-1] if merged else None
            if last is not None and abs(last.at - row[0].at) < 0.01 and rule.start <= last.end + _NEAR:
                merged[-1] = Rule(last.at, last.start, max(last.end, rule.end))
            else:
                merged.append(Rule(row[0].at, rule.start, rule.end))
    return merged


def set_tables(lines: Sequence[PrintedLine], rules: Rules) -> list[PrintedLine]:
    """``lines`` with those of each table as rows in Markdown's form, where the first of them stood."""
    found = list(lines)
    for level, upright in _regions(rules):
        top, bottom = level[0].at, level[-1].at
        left, right = min(rule.start for rule in level), max(rule.end for rule in level)
        inside = [
            line
            for line in found
            if not line.is_row
            and top - _NEAR < line.middle < bottom + _NEAR
            and left - _NEAR < (line.left + line.right) / 2 < right + _NEAR
        ]
        rows = _read_grid(inside, level, upright) if upright else _read_aligned(inside, level)
        if not rows or not _is_table(rows):
            continue
        at = next(at for at, line in enumerate(found) if line is inside[0])
        written = _write(rows, inside)
        kept = {id(line) for line in inside}
        found = (
            [line for line in found[:at] if id(line) not in kept]
            + written
            + [line for line in found[at:] if id(line) not in kept]
        )
    return found


_Region = tuple[list[Rule], list[Rule]]


def _regions(rules: Rules) -> list[_Region]:
    """The rules of each place that may be a table: grids, whose rules meet, and at least three level rules of one width
    below each other."""
    regions: list[_Region] = []
    alone: list[Rule] = []
    for level, upright in _meeting(rules):
        if len(level) >= _FEWEST_RULES and len(upright) >= _FEWEST_RULES:
            regions.append((level, upright))
        elif not upright:
            alone += level
    groups: list[list[Rule]] = []
    for rule in sorted(alone, key=lambda rule: rule.at):
        if rule.end - rule.start < _SHORTEST_RULE:
            continue
        for group in groups:
            if abs(group[0].start - rule.start) < 2 * _NEAR and abs(group[0].end - rule.end) < 2 * _NEAR:
                group.append(rule)
                break
        else:
            groups.append([rule])
    # Such a table has a rule above its header, one below it and one at its end.
    for group in groups:
        parts = [group[at : at + 3] for at in range(0, len(group), 3)] if len(group) % 3 == 0 else [group]
        regions += [(part, []) for part in parts if len(part) >= _FEWEST_RULES]
    return regions


def _meeting(rules: Rules) -> list[_Region]:
    """Level and upright rules that meet, directly or by others."""
    parts: list[_Region] = [([rule], []) for rule in rules.level]
    for rule in rules.upright:
        met = [part for part in parts if any(_meet(level, rule) for level in part[0])]
        if met:
            parts = [part for part in parts if not any(part is other for other in met)]
            parts.append(
                ([level for part in met for level in part[0]], [*(up for part in met for up in part[1]), rule])
            )
    return [(sorted(level, key=lambda rule: rule.at), upright) for level, upright in parts]


def _meet(level: Rule, upright: Rule) -> bool:
    return (
        level.start - _NEAR <= upright.at <= level.end + _NEAR
        and upright.start - _NEAR <= level.at <= upright.end + _NEAR
    )


def _read_grid(lines: Sequence[PrintedLine], level: Sequence[Rule], upright: Sequence[Rule]) -> list[_Row]:
    """The cells between the rules; a row without rules of its own goes on with the one above."""
    sides = _distinct([rule.at for rule in upright])
    heights = _distinct([rule.at for rule in level])
    if len(sides) - 1 > _MOST_COLUMNS:
        return []
    rows: list[_Row] = [[[] for _ in sides[1:]] for _ in heights[1:]]
    for line in lines:
        row = _place(line.middle, heights)
        for character, box in zip(line.text, line.boxes, strict=True):
            rows[row][_place((box[0] + box[2]) / 2, sides)].append((character, box))
        for cell in rows[row]:
            if cell and cell[-1][0] != " ":
                cell.append((" ", cell[-1][1]))
    return [row for row in rows if any(row)]


def _read_aligned(lines: Sequence[PrintedLine], level: Sequence[Rule]) -> list[_Row]:
    """Rows by their heights, columns by the gaps that no line crosses. Rows above the second rule are the header."""
    middle = level[1].at
    taken = [(line.left, line.right) for line in lines if line.middle > middle]
    columns: list[tuple[float, float]] = []
    for left, right in sorted(taken):
        if columns and left < columns[-1][1] + _COLUMN_GAP:
            columns[-1] = columns[-1][0], max(columns[-1][1], right)
        else:
            columns.append((left, right))
    if not 2 <= len(columns) <= _MOST_COLUMNS:
        return []
    sides = [
        columns[0][0],
        *((before[1] + after[0]) / 2 for before, after in pairwise(columns)),
        max(line.right for line in lines),
    ]
    rows: list[_Row] = []
    header: _Row = [[] for _ in columns]
    height: float | None = None
    for line in sorted(lines, key=lambda line: (round(line.middle / 2), line.left)):
        is_new = height is None or line.middle - height > _LEVEL * line.size
        if line.middle < middle:
            row = header
        else:
            if is_new or not rows:
                rows.append([[] for _ in columns])
            row = rows[-1]
        height = line.middle if is_new or height is None else height
        cell = row[_place((line.left + line.right) / 2, sides)]
        cell += zip(line.text, line.boxes, strict=True)
        cell.append((" ", cell[-1][1]))
    merged: list[_Row] = []
    for row in rows:
        # A row without its first cell goes on with the one above.
        if merged and not row[0] and sum(map(bool, row)) < len(columns) / 2:
            for above, cell in zip(merged[-1], row, strict=True):
                above += cell
        else:
            merged.append(row)
    return [header, *merged] if any(header) else merged


def _distinct(values: Sequence[float]) -> list[float]:
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > _NEAR:
            found.append(value)
    return found


def _place(value: float, sides: Sequence[float]) -> int:
    return next((at for at, side in enumerate(sides[1:-1]) if value < side), len(sides) - 2)


def _is_table(rows: Sequence[_Row]) -> bool:
    cells = [cell for row in rows for cell in row]
    filled = sum(map(bool, cells))
    return (
        len(rows) >= 2
        and len(rows[0]) >= 2
        and filled >= _FULL_SHARE * len(cells)
        and sum(map(bool, rows[0])) >= 2
        and max(map(len, cells)) <= _LONGEST_CELL
    )


def _write(rows: Sequence[_Row], lines: Sequence[PrintedLine]) -> list[PrintedLine]:
    size = max(lines, key=lambda line: len(line.text)).size
    written = []
    for at, row in enumerate(rows):
        pieces: list[tuple[str, Box]] = []
        place = next(cell[0][1] for cell in row if cell)
        for cell in row:
            pieces += [("|", place), (" ", place)]
            for character, box in _trim(cell):
                if character == "|":
                    pieces.append(("\\", box))
                pieces.append((character, box))
                place = box
            pieces.append((" ", place))
        pieces.append(("|", place))
        text, boxes = "".join(piece for piece, _ in pieces), [box for _, box in pieces]
        written.append(
            PrintedLine(text, around(box for cell in row for _, box in cell), size, boxes=boxes, is_row=True)
        )
        if at == 0:
            rule = "|" + " --- |" * len(row)
            written.append(PrintedLine(rule, box, size, boxes=[box] * len(rule), is_row=True))
    return written


def _trim(cell: _Cell) -> _Cell:
    while cell and cell[-1][0] == " ":
        cell = cell[:-1]
    return cell


def join_tables(pages: Sequence[PrintedPage]) -> None:
    """Has a table that goes on at the top of the next page go on there, without a header of its own.

    A header that is printed again is dropped; where none is, the first row is one like the others.
    """
    header = ""
    for before, page in pairwise(pages):
        last = [line.text for line in before.lines if line.is_row]
        at = next((at for at, text in reversed(list(enumerate(last))) if _is_delimiter(text)), None)
        header = last[at - 1] if at else header
        if not (before.lines and before.lines[-1].is_row and len(page.lines) > 1 and page.lines[0].is_row):
            continue
        columns = page.lines[1].text.count("|")
        if _is_delimiter(page.lines[1].text) and columns == header.count("|") - header.count("\\|"):
            del page.lines[1]
            if page.lines[0].text == header:
                del page.lines[0]


def _is_delimiter(text: str) -> bool:
    return text.startswith("| --- |") and set(text) <= set("| -")
