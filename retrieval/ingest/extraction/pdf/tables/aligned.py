"""Tables without rules, found by the places of their cells. PURE.

What is no table costs a reader more than a table that is read as text: rows become one only when their columns are
aligned and most cells of some column are values, or when its header is set off.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from retrieval.ingest.extraction.pdf.printed import PrintedLine
from retrieval.ingest.extraction.pdf.tables.cells import (
    holds_several_numbers,
    is_value,
    looks_like_addresses,
    looks_like_code,
    looks_like_contents,
    looks_like_drawing,
    looks_like_form,
    looks_like_maths,
    looks_like_prose,
)
from retrieval.ingest.extraction.pdf.tables.columns import (
    PrintedRow,
    columns_of,
    find_columns,
    find_rows,
    is_fixed_pitch,
)
from retrieval.ingest.extraction.pdf.tables.grid import Grid, lay_out, read_body, read_header
from retrieval.ingest.extraction.pdf.tables.rows import FoundTable, text_of
from retrieval.ingest.extraction.pdf.tables.rules import NEAR, RuledLine

_MOST_COLUMNS = 30
_WIDEST_PITCH = 4.5
_TIGHT_PITCH = 1.5
_FEWEST_ROWS = 3
_FULL_SHARE = 0.6
# Of the rows of a table so many hold most of its columns; the others are lines of wrapped cells.
_FULL_ROWS = 0.3
_ALIGNED = 0.35
_ALIGNED_SHARE = 0.75
_ALIGNED_COLUMNS = 0.8
_LONGEST_LINE = 60
_PROSE_LINE = 25
_DEEPEST = 4
_CROWDED = 0.03
# Rows of a table without names of its columns; the second, of one that is numbers and nothing else.
_FEWEST_UNNAMED, _FEWEST_NUMBERS = 4, 10


def find_aligned_tables(lines: Sequence[PrintedLine], level: Sequence[RuledLine] = ()) -> list[FoundTable]:
    """The tables among the ``lines`` of a page that no rules set off; ``level`` rules only help to tell a header."""
    tables: list[FoundTable] = []
    for column in _columns_of_text(lines):
        for run in _find_runs(find_rows(column)):
            tables += _read_run(run, level, 0)
    return tables


def _columns_of_text(lines: Sequence[PrintedLine]) -> list[list[PrintedLine]]:
    """The lines of each column of prose, and those that cross columns; all of them on a page of one column."""
    prose = [line for line in lines if len(line.text) >= _PROSE_LINE and not line.is_row]
    for place in sorted({round(line.left) - 2.0 for line in prose}):
        before = [line for line in prose if line.right <= place]
        after = [line for line in prose if line.left >= place]
        if min(len(before), len(after)) < 6 or len(before) + len(after) < 0.75 * len(prose):
            continue
        width = max(line.right for line in before) - min(line.left for line in before)
        full = [line for line in before if line.right - line.left > 0.8 * width]
        if len(full) < 0.5 * len(before):
            continue
        left = [line for line in lines if line.right <= place]
        right = [line for line in lines if line.left >= place]
        return [left, right, [line for line in lines if line.left < place < line.right]]
    return [list(lines)]


def _find_runs(rows: Sequence[PrintedRow]) -> list[list[PrintedRow]]:
    """Rows below each other, most of which are of several pieces."""
    runs: list[list[PrintedRow]] = [[]]
    for row in rows:
        run = runs[-1]
        is_far = bool(run) and row.middle - run[-1].middle > _WIDEST_PITCH * max(row.size, run[-1].size)
        is_line = len(row.pieces) == 1 and len(row.pieces[0].text) > _LONGEST_LINE
        is_line = is_line or (len(row.pieces) <= 2 and _is_code(row))
        if is_far or is_line:
            runs.append([])
        if not is_line:
            runs[-1].append(row)
    return [trimmed for run in runs if len(trimmed := _trim(run)) >= _FEWEST_ROWS]


def _trim(run: Sequence[PrintedRow]) -> list[PrintedRow]:
    """From the first to the last row of several pieces, with what only one column has above and below them."""
    several = [at for at, row in enumerate(run) if len(row.pieces) > 1]
    if not several:
        return []
    first = several[0]
    while first and run[first - 1].left > run[first].pieces[0].right and _is_tight(run, first, like=first + 1):
        first -= 1
    last = several[-1] + 1
    while last < len(run) and _is_tight(run, last):
        if run[last].left < run[several[-1]].pieces[0].right and not run[last].pieces[0].text[:1].islower():
            break
        last += 1
    return list(run[first:last])


def _is_tight(run: Sequence[PrintedRow], at: int, *, like: int = 0) -> bool:
    """Whether a row stands as close below the one above it as lines of a paragraph do, or as the row ``like``."""
    usual = run[like].middle - run[like - 1].middle if 0 < like < len(run) else 0.0
    return run[at].middle - run[at - 1].middle < max(_TIGHT_PITCH * run[at].size, 1.1 * usual)


def _read_run(run: Sequence[PrintedRow], level: Sequence[RuledLine], depth: int) -> list[FoundTable]:
    if len(run) < _FEWEST_ROWS:
        return []
    table = _read_table(run, level)
    if table is not None:
        return [table]
    if depth >= _DEEPEST:
        return []
    # Two tables, or a table and something beside it: parted where the gap is widest, else where the pieces change.
    pitches = [below.middle - above.middle for above, below in pairwise(run)]
    widest = max(range(len(pitches)), key=pitches.__getitem__)
    if pitches[widest] < 1.3 * median(pitches):
        singles = [at for at in range(1, len(run) - 1) if len(run[at].pieces) == 1]
        if not singles:
            return []
        widest = singles[len(singles) // 2]
    above, below = _trim(run[: widest + 1]), _trim(run[widest + 1 :])
    return _read_run(above, level, depth + 1) + _read_run(below, level, depth + 1)


def _read_table(run: Sequence[PrintedRow], level: Sequence[RuledLine]) -> FoundTable | None:
    size = median(row.size for row in run)
    most = sorted(len(row.pieces) for row in run)[int(0.75 * (len(run) - 1))]
    if most < 2:
        return None
    run = _from_header(run, most)
    full = [row for row in run if len(row.pieces) >= max(2, 0.6 * most)]
    if len(full) < _FEWEST_ROWS - 1 or len(full) < _FULL_ROWS * len(run):
        return None
    columns = find_columns(full, size, slack=len(full) // 10)
    if not 2 <= len(columns) <= _MOST_COLUMNS or len(columns) < most - 1:
        return None
    while len(run) > _FEWEST_ROWS and _is_beside(run, len(columns)):
        run = run[:-1]
    while len(run) > _FEWEST_ROWS and (_is_beside(run[::-1], len(columns)) or _is_code(run[0])):
        run = run[1:]
    grid = lay_out(run, columns)
    while len(grid.rows) > _FEWEST_ROWS and _is_note(grid):
        run = run[:-1]
        grid = lay_out(run, columns)
    body = read_body(grid)
    texts = [[text_of(cell) for cell in row] for row in body]
    if not _is_table(grid, texts, level) or not _is_aligned(grid):
        return None
    return FoundTable([line for row in run for line in row.lines], read_header(grid), body)


def _from_header(run: Sequence[PrintedRow], most: int) -> Sequence[PrintedRow]:
    """``run`` from its first row in bold type that names all columns, if what stands above it holds less."""
    for at, row in enumerate(run[: len(run) - 1]):
        if row.is_bold and len(row.pieces) >= most and not run[at + 1].is_bold:
            above = run[:at]
            return run[at:] if above and all(len(other.pieces) < most and not other.is_bold for other in above) else run
    return run


def _is_beside(run: Sequence[PrintedRow], width: int) -> bool:
    """Whether the last of ``run`` stands further away than the others, and holds less."""
    pitches = [abs(below.middle - above.middle) for above, below in pairwise(run)]
    return len(run[-1].pieces) <= max(1, width // 2) and pitches[-1] > 1.4 * median(pitches)


def _is_code(row: PrintedRow) -> bool:
    return looks_like_code([[piece.text for piece in row.pieces]])


def _is_note(grid: Grid) -> bool:
    """Whether the last row is words below the table."""
    filled = [grid.texts[-1][column] for column in grid.values if grid.texts[-1][column]]
    last = grid.rows[-1].pieces[0]
    if grid.values and not filled:
        return not last.text[:1].islower() or last.right > grid.columns[0].right + last.size
    return 2 * sum(map(is_value, filled)) < len(filled)


def _is_table(grid: Grid, body: Sequence[Sequence[str]], level: Sequence[RuledLine]) -> bool:
    texts = grid.texts
    width = len(grid.columns)
    written = [row for row in body if sum(map(bool, row)) > 1]
    if len(written) < 2 or len(texts) < _FEWEST_ROWS:
        return False
    if sum(map(bool, (cell for row in written for cell in row))) < _FULL_SHARE * width * len(written):
        return False
    wrong = (looks_like_prose, looks_like_drawing, looks_like_code, looks_like_maths, looks_like_form)
    if _overlap(grid.rows) or any(looks(body) for looks in wrong):
        return False
    if sum(holds_several_numbers(cell) for row in body for cell in row) > _CROWDED * width * len(body):
        return False
    names = [text_of(name) for name in read_header(grid)]
    if not all(names[1:]) and looks_like_contents(body):
        return False
    # What a program printed is shown as it is.
    if is_fixed_pitch(grid.rows):
        return False
    has_rule = _has_rule_below_header(grid, level)
    is_named = grid.header_rows > 0
    if not grid.values:
        is_set_off = grid.header_rows > 0 and all(grid.texts[grid.header_rows - 1])
        return width >= 3 and len(written) >= 3 and is_set_off and not looks_like_addresses(body)
    if width == 2:
        numbers = [row[grid.values[-1]] for row in written if row[grid.values[-1]]]
        is_named = is_named or has_rule
        return grid.values == [1] and len(numbers) >= (3 if is_named else 4) and (is_named or _alike(numbers))
    fewest = _FEWEST_UNNAMED if len(grid.values) < width else _FEWEST_NUMBERS
    return is_named or (len(written) >= fewest and len(grid.values) >= 2)


def _overlap(rows: Sequence[PrintedRow]) -> bool:
    """Whether rows stand closer than lines of text do, as the lettering of a drawing may."""
    pitches = [(below.middle - above.middle) / max(below.size, 1.0) for above, below in pairwise(rows)]
    return sum(pitch < 0.85 for pitch in pitches) > 0.2 * len(pitches)


def _has_rule_below_header(grid: Grid, level: Sequence[RuledLine]) -> bool:
    if len(grid.rows) < 2:
        return False
    top, bottom = grid.rows[0].middle, grid.rows[1].middle
    left, right = grid.columns[0].left, grid.columns[-1].right
    return any(top < rule.at < bottom and rule.start < left + NEAR and rule.end > right - NEAR for rule in level)


def _alike(numbers: Sequence[str]) -> bool:
    """Whether numbers without a name over them are of one kind: the same decimals and the same unit."""
    shapes = ["".join("0" if sign.isdigit() else sign for sign in cell).lstrip("0.,") for cell in numbers]
    decimals = [cell.rpartition(".")[2] if "." in cell else "" for cell in numbers]
    same = max(map([len(text) for text in decimals].count, {len(text) for text in decimals}))
    usual = max(map(shapes.count, set(shapes)))
    return all(map(is_value, numbers)) and same >= 0.8 * len(numbers) and usual >= 0.8 * len(numbers)


def _is_aligned(grid: Grid) -> bool:
    """Whether the cells of most columns begin, end or have their middle at one place."""
    aligned = []
    for at in range(len(grid.columns)):
        pieces = [
            piece
            for row in grid.rows[grid.header_rows :]
            for piece in row.pieces
            if columns_of(piece, grid.columns) == [at]
        ]
        if len(pieces) < 2:
            continue
        near = _ALIGNED * median(piece.size for piece in pieces)
        shares = []
        for places in (
            [piece.left for piece in pieces],
            [piece.right for piece in pieces],
            [(piece.left + piece.right) / 2 for piece in pieces],
        ):
            usual = median(places)
            shares.append(sum(abs(place - usual) < near for place in places) / len(places))
        aligned.append(max(shares) >= _ALIGNED_SHARE)
    return len(aligned) >= 2 and sum(aligned) >= _ALIGNED_COLUMNS * len(aligned)
