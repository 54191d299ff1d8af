"""Find the rows and columns of printed tables, and build tables from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

from retrieval.documents.extraction.cell_tables import TOTAL, YEAR
from retrieval.documents.extraction.grouping import group_consecutive
from retrieval.documents.extraction.printed import CUT_WORD, REST_OF_WORD, Box, PrintedLine, is_compound_hyphen
from retrieval.documents.extraction.writer import is_cell_value

MOST_COLUMNS = 30
_MOST_HEADER_ROWS = 5
# The unit is the font size. A space wider than _GAP separates two cells of a line. A gap of at least _CORRIDOR
# separates two columns. Lines of one row differ in height by less than _LEVEL. If rows have several lines, the space
# between rows exceeds the space between their lines by at least _ROW_SPACE.
_GAP = 0.9
_CORRIDOR = 0.45
_LEVEL = 0.45
_ROW_SPACE = 0.12

Cell = list[tuple[str, Box]]
Row = list[Cell]
Columns = Sequence[tuple[float, float]]
"""Left and right side of each column."""


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table that was found on a page, and the ``lines`` that it replaces."""

    lines: list[PrintedLine]
    header: Row
    rows: list[Row]


@dataclass(slots=True)
class RowPiece:
    """A part of a printed row, between wide gaps."""

    cell: Cell
    line: PrintedLine

    @property
    def text(self) -> str:
        return text_of(self.cell)

    @property
    def left(self) -> float:
        return self.cell[0][1][0]

    @property
    def right(self) -> float:
        return max(box[2] for _, box in self.cell)

    @property
    def middle_x(self) -> float:
        return (self.left + self.right) / 2


@dataclass(slots=True)
class PrintedRow:
    pieces: list[RowPiece]
    lines: list[PrintedLine]

    @property
    def middle_y(self) -> float:
        return median(piece.line.middle_y for piece in self.pieces)

    @property
    def size(self) -> float:
        return max(piece.line.size for piece in self.pieces)

    @property
    def top(self) -> float:
        return min(piece.line.top for piece in self.pieces)

    @property
    def bottom(self) -> float:
        return max(piece.line.bottom for piece in self.pieces)

    @property
    def is_bold(self) -> bool:
        return all(piece.line.is_bold for piece in self.pieces)


def text_of(cell: Cell) -> str:
    return "".join(character for character, _ in cell).strip()


def join_cells(parts: Sequence[Cell], *, is_name: bool = False) -> Cell:
    """Return the parts of a cell joined by spaces. If ``is_name``, a part that equals the part before is left out."""
    joined: Cell = []
    said = ""
    for part in parts:
        text = text_of(part)
        if not text or (is_name and text == said):
            continue
        # A date, number or word that is split at the end of a line is joined without a space.
        cut, rest = CUT_WORD.search(said), REST_OF_WORD.match(text)
        is_cut = bool(cut and rest) or (said[-1:] in "-–/" and said[-2:-1].isdigit() and text[0].isdigit())
        if cut and rest and not is_compound_hyphen(said, cut, rest):
            joined = joined[:-1]
        joined += trim(part) if not joined or is_cut else [(" ", part[0][1]), *trim(part)]
        said = text
    return joined


def trim(cell: Cell) -> Cell:
    first, last = 0, len(cell)
    while first < last and cell[first][0] == " ":
        first += 1
    while last > first and cell[last - 1][0] == " ":
        last -= 1
    return cell[first:last]


def find_rows(lines: Sequence[PrintedLine]) -> list[PrintedRow]:
    levels = group_consecutive(
        sorted(lines, key=lambda line: line.middle_y),
        lambda row, line: (
            line.middle_y - median(other.middle_y for other in row) < _LEVEL * max(line.size, row[0].size)
        ),
    )
    rows = [
        PrintedRow(sorted((p for line in row for p in _split_line_at_gaps(line)), key=lambda p: p.left), row)
        for row in levels
    ]
    return [row for row in rows if row.pieces]


def _split_line_at_gaps(line: PrintedLine) -> list[RowPiece]:
    pieces: list[Cell] = [[]]
    for character, box in zip(line.text, line.boxes, strict=True):
        if character == " " and box[2] - box[0] > _GAP * line.size and pieces[-1]:
            pieces.append([])
        pieces[-1].append((character, box))
    return [RowPiece(cell, line) for cell in map(trim, pieces) if cell]


def find_columns(rows: Sequence[PrintedRow]) -> Columns:
    """Return the left and right sides of columns."""
    places = [piece.middle_x for row in rows for piece in row.pieces]
    return [(left, right) for left, right in _find_gaps(rows) if sum(left < place < right for place in places) > 1]


def _find_gaps(rows: Sequence[PrintedRow]) -> list[tuple[float, float]]:
    slack = len(rows) // 10
    size = median(row.size for row in rows)
    edges = sorted(
        edge
        for row in rows
        for piece in row.pieces
        for edge in ((piece.left, 1), (max(piece.right, piece.left + 0.1), -1))
    )
    columns: list[tuple[float, float]] = []
    depth, start = 0, 0.0
    end: float | None = None
    for at, step in edges:
        before, depth = depth, depth + step
        if before <= slack < depth:
            if end is None or at - end >= _CORRIDOR * size:
                if end is not None:
                    columns.append((start, end))
                start = at
            end = None
        elif depth <= slack < before:
            end = at
    return columns if end is None else [*columns, (start, end)]


def _find_overlapped_columns(piece: RowPiece, columns: Columns) -> list[int]:
    touched = [at for at, (left, right) in enumerate(columns) if min(piece.right, right) - max(piece.left, left) > 0.5]
    nearest = min(
        range(len(columns)), key=lambda at: max(columns[at][0] - piece.middle_x, piece.middle_x - columns[at][1])
    )
    return touched or [nearest]


@dataclass(slots=True)
class Grid:
    """A printed table, divided into rows and columns. The first ``header`` rows are column names."""

    groups: list[list[PrintedRow]]
    columns: Columns
    cells: list[Row]
    texts: list[list[str]]
    header: int
    values: list[int]


def build_grid(groups: Sequence[list[PrintedRow]], columns: Columns, header: int | None = None) -> Grid:
    cells: list[Row] = []
    for group in groups:
        laid: list[list[Cell]] = [[] for _ in columns]
        for row in group:
            for piece in row.pieces:
                laid[_find_overlapped_columns(piece, columns)[0]].append(piece.cell)
        cells.append([join_cells(parts) for parts in laid])
    texts = [[text_of(cell) for cell in row] for row in cells]
    values = _find_value_columns(texts)
    if header is None:
        header = _count_header_rows(groups, texts, values)
    if header and values:
        values = _find_value_columns(texts[header:]) if len(texts) > header else []
    return Grid(list(groups), columns, cells, texts, header, values)


def _find_value_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    found = []
    for at in range(len(rows[0])):
        cells = [row[at] for row in rows if row[at]]
        first = next(
            (place for place, cell in enumerate(cells) if is_cell_value(cell) and not YEAR.fullmatch(cell)), None
        )
        if first is None:
            first = next((place for place, cell in enumerate(cells) if is_cell_value(cell)), None)
        if first is not None and first <= 3:
            below = cells[first:]
            if len(below) >= 2 and sum(map(is_cell_value, below)) >= 0.75 * len(below):
                found.append(at)
    return found


def _count_header_rows(
    groups: Sequence[list[PrintedRow]], texts: Sequence[Sequence[str]], values: Sequence[int]
) -> int:
    most = min(_MOST_HEADER_ROWS, len(groups) - 1)
    count = 0
    for at in range(most):
        filled = [texts[at][column] for column in values if texts[at][column]]
        has_years = any(YEAR.fullmatch(row[column]) for row in texts[at + 1 : at + 3] for column in values)
        names = [cell for cell in filled if not is_cell_value(cell) or (YEAR.fullmatch(cell) and not has_years)]
        if filled and 2 * len(names) < len(filled):
            break
        if filled and len(names) == len(filled):
            count = at + 1
    if count:
        return count
    bold = 0
    while bold < most and all(row.is_bold for row in groups[bold]) and sum(map(bool, texts[bold])) >= 2:
        bold += 1
    is_set_off = not any(row.is_bold for group in groups[bold : bold + 3] for row in group)
    return bold if bold < most and is_set_off else 0


def _read_header(grid: Grid) -> Row:
    parts: list[list[Cell]] = [[] for _ in grid.columns]
    rows = [row for group in grid.groups[: grid.header] for row in group]
    for at, row in enumerate(rows):
        for piece in row.pieces:
            if at < len(rows) - 1 and len(row.pieces) < len(grid.columns):
                over = _find_span(piece, row, grid.columns)
            elif len(row.pieces) == len(grid.columns):
                over = [row.pieces.index(piece)]
            else:
                over = _find_overlapped_columns(piece, grid.columns)
            for column in over:
                parts[column].append(piece.cell)
    return [join_cells(cells, is_name=True) for cells in parts]


def _find_span(piece: RowPiece, row: PrintedRow, columns: Columns) -> Sequence[int]:
    touched = _find_overlapped_columns(piece, columns)
    best: Sequence[int] = touched
    if any(abs(piece.left - columns[at][0]) < 0.3 * piece.line.size for at in touched[:1]) and len(touched) == 1:
        return touched
    beside = {at for other in row.pieces if other is not piece for at in _find_overlapped_columns(other, columns)}
    for first in range(touched[0] + 1):
        for last in range(touched[-1], len(columns)):
            span = range(first, last + 1)
            middle = (columns[first][0] + columns[last][1]) / 2
            near = max(0.15 * (columns[last][1] - columns[first][0]) / len(span), 0.5 * piece.line.size)
            if len(best) < len(span) < len(columns) and not beside & set(span) and abs(middle - piece.middle_x) < near:
                best = span
    return best


def _measure_row_gap(above: PrintedRow, below: PrintedRow) -> float:
    return (below.top - above.bottom) / above.size


def group_rows(rows: Sequence[PrintedRow], columns: Columns) -> list[list[PrintedRow]]:
    """Group the printed rows into rows of the table, whose cells may be wrapped."""

    def measure_filled_share(groups: Sequence[Sequence[PrintedRow]]) -> float:
        touched = [
            {at for row in g for piece in row.pieces for at in _find_overlapped_columns(piece, columns)} for g in groups
        ]
        return mean(len(each) for each in touched) / len(columns)

    single = [[row] for row in rows]
    steps = sorted(_measure_row_gap(above, below) for above, below in pairwise(rows))
    widest, border = max(((wide - near, (wide + near) / 2) for near, wide in pairwise(steps)), default=(0.0, 0.0))
    if widest < _ROW_SPACE:
        return single
    groups = group_consecutive(rows, lambda above, row: _measure_row_gap(above[-1], row) < border)
    is_better = (
        len(groups) > 2
        and measure_filled_share(groups) >= 0.7
        and measure_filled_share(single) < measure_filled_share(groups) - 0.15
    )
    return groups if is_better else single


def _read_table_body(grid: Grid) -> list[Row]:
    rows: list[Row] = []
    for cells, texts in zip(grid.cells[grid.header :], grid.texts[grid.header :], strict=True):
        has_value = any(texts[column] for column in grid.values)
        is_rest = bool(rows) and not has_value and not texts[0]
        if is_rest and (grid.values or sum(map(bool, texts)) <= len(texts) / 2):
            rows[-1] = [join_cells([above, cell]) for above, cell in zip(rows[-1], cells, strict=True)]
            continue
        empty = next((place for place, text in enumerate(texts) if text), 0)
        can_repeat = (
            0 < empty <= 2
            and rows
            and not any(column < empty for column in grid.values)
            and sum(map(bool, texts)) >= len(texts) - empty - 1
            and not TOTAL.match(texts[empty])
            and not is_cell_value(texts[empty])
        )
        rows.append([*rows[-1][:empty], *cells[empty:]] if can_repeat else list(cells))
    return rows


def build_table_from_grid(grid: Grid) -> FoundTable:
    lines = [line for group in grid.groups for row in group for line in row.lines]
    return FoundTable(lines, _read_header(grid), _read_table_body(grid))
