"""Find tables of printed pages, by their drawn lines or by the positions of their cells.

Doubtful tables are left out, because a wrong table harms readers more than a missed one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from retrieval.documents.extraction.printed import Box, PrintedLine, PrintedPage, find_surrounding_box
from retrieval.documents.extraction.ruled_tables import RuledLines, find_ruled_tables
from retrieval.documents.extraction.table_rows import (
    MOST_COLUMNS,
    FoundTable,
    Grid,
    PrintedRow,
    Row,
    build_grid,
    build_table_from_grid,
    find_columns,
    find_rows,
    group_rows,
    text_of,
    trim,
)

_FEWEST_ROWS = 3
_DEEPEST_SPLIT = 4
# Largest distances, in font sizes: _TIGHT between two lines of a row, _WIDEST_PITCH between two rows.
_TIGHT = 1.5
_WIDEST_PITCH = 4.5
_PROSE_LINE = 60
_FULL_SHARE = 0.6
_NOT_DATA = re.compile(r"[=∑∏∫√∂∇∈∀∃≡⊂⊆∪∩\ue000-\uf8ff]|@|\bwww\.|https?:|\b\d{4}\s?[A-Z]{2}\b|\bP\.?O\.? Box\b|:$|__$")
_PAGE_NUMBER = re.compile(r"\d{1,4}|[ivxlc]{1,6}")


def replace_by_tables(lines: Sequence[PrintedLine], rules: RuledLines) -> list[PrintedLine]:
    found = list(lines)
    for table in find_ruled_tables(lines, rules):
        found = _replace_lines_with_table(found, table)
    for run in _find_row_runs(find_rows([line for line in found if not line.is_row])):
        for table in _find_tables_in_row_run(run, 0):
            found = _replace_lines_with_table(found, table)
    return found


def _replace_lines_with_table(lines: Sequence[PrintedLine], table: FoundTable) -> list[PrintedLine]:
    taken = {id(line) for line in table.lines}
    at = next(at for at, line in enumerate(lines) if id(line) in taken)
    written = _write_rows(table.header, table.rows, median(line.size for line in table.lines))
    return [
        *(line for line in lines[:at] if id(line) not in taken),
        *written,
        *(line for line in lines[at:] if id(line) not in taken),
    ]


def _find_row_runs(rows: Sequence[PrintedRow]) -> list[list[PrintedRow]]:
    runs: list[list[PrintedRow]] = [[]]
    left = min((row.pieces[0].left for row in rows), default=0.0)
    for row in rows:
        run = runs[-1]
        first = row.pieces[0]
        is_far = bool(run) and row.middle_y - run[-1].middle_y > _WIDEST_PITCH * max(row.size, run[-1].size)
        # A long line further to the right may be a wrapped cell.
        is_prose = len(row.pieces) == 1 and len(first.text) > _PROSE_LINE and first.left < left + first.line.size
        if is_far or is_prose:
            runs.append([])
        if not is_prose:
            runs[-1].append(row)
    return [trimmed for run in runs if len(trimmed := _trim_row_run(run)) >= _FEWEST_ROWS]


def _trim_row_run(run: Sequence[PrintedRow]) -> list[PrintedRow]:
    """Remove rows with a single piece from both ends of the run, except rows that continue a wrapped cell."""
    several = [at for at, row in enumerate(run) if len(row.pieces) > 1]
    if not several:
        return []
    first, last = several[0], several[-1] + 1
    beside = run[first].pieces[0].right

    pitches = [lower.middle_y - upper.middle_y for upper, lower in pairwise(run[first : several[-1] + 1])]
    usual = 1.1 * median(pitches) if pitches else 0.0

    def are_rows_near(above: PrintedRow, below: PrintedRow) -> bool:
        return below.middle_y - above.middle_y < max(_TIGHT * below.size, usual)

    while first and run[first - 1].pieces[0].left > beside and are_rows_near(run[first - 1], run[first]):
        first -= 1
    while last < len(run) and run[last].pieces[0].left > beside and are_rows_near(run[last - 1], run[last]):
        last += 1
    return list(run[first:last])


def _find_tables_in_row_run(run: Sequence[PrintedRow], depth: int) -> list[FoundTable]:
    if len(run) < _FEWEST_ROWS:
        return []
    columns = find_columns(run)
    if 2 <= len(columns) <= MOST_COLUMNS:
        grid = build_grid(group_rows(run, columns), columns)
        table = build_table_from_grid(grid)
        if _is_plausible_table(grid, table):
            return [table]
    if depth >= _DEEPEST_SPLIT:
        return []
    # The rows may be two tables.
    spaces = [below.top - above.bottom for above, below in pairwise(run)]
    widest = max(range(len(spaces)), key=spaces.__getitem__)
    if spaces[widest] < median(spaces) + 0.3 * run[0].size:
        singles = [at for at in range(1, len(run) - 1) if len(run[at].pieces) == 1]
        if not singles:
            return []
        widest = singles[len(singles) // 2]
    return [
        table
        for part in (run[: widest + 1], run[widest + 1 :])
        for table in _find_tables_in_row_run(_trim_row_run(part), depth + 1)
    ]


def _is_plausible_table(grid: Grid, table: FoundTable) -> bool:
    width = len(grid.columns)
    body = [[text_of(cell) for cell in row] for row in table.rows]
    written = [row for row in body if sum(map(bool, row)) > 1]
    cells = [cell for row in written for cell in row if cell]
    if len(written) < 2 or len(body) + grid.header < _FEWEST_ROWS or len(cells) < _FULL_SHARE * width * len(written):
        return False
    if _is_table_of_contents(body) or sum(any(map(_NOT_DATA.search, row)) for row in body) >= 0.3 * len(body):
        return False
    if not grid.values:
        is_set_off = grid.header > 0 and all(grid.texts[grid.header - 1])
        return width >= 3 and len(written) >= 3 and is_set_off
    if width == 2:
        return grid.values == [1] and len(written) >= (3 if grid.header else 4)
    return grid.header > 0 or (len(written) >= 4 and len(grid.values) >= 2)


def _is_table_of_contents(rows: Sequence[Sequence[str]]) -> bool:
    ends = [next((cell for cell in reversed(row) if cell), "") for row in rows]
    if len(rows[0]) > 4 or sum(bool(_PAGE_NUMBER.fullmatch(end)) for end in ends) < 0.8 * len(ends):
        return False
    titles = sum(sum(map(str.isalpha, cell)) >= 3 for row in rows for cell in row[:-1])
    pages = [int(end) for end in ends if end.isdigit()]
    rises = sum(after >= before for before, after in pairwise(pages))
    return titles >= 0.7 * len(rows) and rises >= 0.9 * max(1, len(pages) - 1)


def _write_rows(header: Row, rows: Sequence[Row], size: float) -> list[PrintedLine]:
    place = next(cell[0][1] for row in [header, *rows] for cell in row if cell)
    written = []
    for at, row in enumerate([header, *rows]):
        pieces: list[tuple[str, Box]] = []
        place = next((cell[0][1] for cell in row if cell), place)
        for cell in row:
            pieces += [("|", place), (" ", place)]
            for character, box in trim(cell):
                if character == "|":
                    pieces.append(("\\", box))
                pieces.append((character, box))
                place = box
            pieces.append((" ", place))
        pieces.append(("|", place))
        text, boxes = "".join(piece for piece, _ in pieces), [box for _, box in pieces]
        written.append(PrintedLine(text, find_surrounding_box(boxes), size, boxes=boxes, is_row=True))
        if at == 0:
            rule = "|" + " --- |" * len(row)
            written.append(PrintedLine(rule, written[0].box, size, boxes=[place] * len(rule), is_row=True))
    return written


def join_tables(pages: Sequence[PrintedPage]) -> None:
    """Join each table with its continuation on the next page, and remove the repeated header."""
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
            if page.lines[0].text == header or not page.lines[0].text.strip("| "):
                del page.lines[0]


def _is_delimiter(text: str) -> bool:
    return text.startswith("| --- |") and set(text) <= set("| -")
