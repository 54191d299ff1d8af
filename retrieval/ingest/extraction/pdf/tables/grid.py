"""From printed rows and their columns to a table: names over several rows, wrapped and merged cells. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from retrieval.ingest.extraction.pdf.tables.cells import is_total, is_value, is_year, value_columns
from retrieval.ingest.extraction.pdf.tables.columns import (
    PrintedColumn,
    PrintedRow,
    RowPiece,
    columns_of,
    cut_at_columns,
)
from retrieval.ingest.extraction.pdf.tables.rows import Cell, Row, join_cells, text_of

_MOST_HEADER_ROWS = 5
# By how much rows stand further apart than the lines within them; how much of a first line is filled, and of others.
_TIGHT = 1.2
_FULL_ROW, _EMPTIER = 0.7, 0.15
_CENTRED = 0.15
_SHORTEST_BEGINNING = 15


@dataclass(slots=True)
class Grid:
    """The cells of each printed row; ``header_rows`` of them, from the top, hold the names of the columns."""

    rows: list[PrintedRow]
    columns: Sequence[PrintedColumn]
    cells: list[Row]
    texts: list[list[str]]
    header_rows: int
    values: list[int]

    @property
    def body(self) -> list[list[str]]:
        return self.texts[self.header_rows :]


def lay_out(rows: Sequence[PrintedRow], columns: Sequence[PrintedColumn], header_rows: int | None = None) -> Grid:
    """The grid of ``rows``; how many of them are its header is found out unless it is given."""
    cells: list[Row] = []
    for row in rows:
        laid: list[list[Cell]] = [[] for _ in columns]
        for piece in row.pieces:
            for touched, part in cut_at_columns(piece, columns):
                laid[touched[0]].append(part.cell)
        cells.append([join_cells(parts) for parts in laid])
    texts = [[text_of(cell) for cell in row] for row in cells]
    values = value_columns(texts)
    count = _count_header(rows, texts, values) if header_rows is None else header_rows
    if count and values:
        values = value_columns(texts[count:]) if len(texts) > count else []
    return Grid(list(rows), columns, cells, texts, count, values)


def _count_header(rows: Sequence[PrintedRow], texts: Sequence[Sequence[str]], values: Sequence[int]) -> int:
    """How many rows from the top name columns: those above the first values, or those alone in bold type."""
    most = min(_MOST_HEADER_ROWS, len(rows) - 1)
    count = 0
    for at in range(most):
        filled = [texts[at][column] for column in values if texts[at][column]]
        names = [cell for cell in filled if not is_value(cell) or (is_year(cell) and not _has_years(texts, at, values))]
        if filled and 2 * len(names) < len(filled):
            break
        if filled and len(names) == len(filled):
            count = at + 1
    if count:
        return count
    bold = 0
    while bold < most and rows[bold].is_bold and sum(map(bool, texts[bold])) >= 2:
        bold += 1
    return bold if bold and bold < most and not any(row.is_bold for row in rows[bold : bold + 3]) else 0


def _has_years(texts: Sequence[Sequence[str]], at: int, values: Sequence[int]) -> bool:
    """Whether years stand in the rows below too, and name no columns."""
    return any(is_year(below[column]) for below in texts[at + 1 : at + 3] for column in values if texts[at][column])


def read_header(grid: Grid) -> Row:
    """The name of each column: what stands over it, from top to bottom; over several columns, in each of them."""
    parts: list[list[Cell]] = [[] for _ in grid.columns]
    for at, row in enumerate(grid.rows[: grid.header_rows]):
        is_last = at == grid.header_rows - 1
        if is_last and (names := _name_each(row, grid.columns)):
            for cells, name in zip(parts, names, strict=True):
                cells.append(name)
            continue
        for piece in row.pieces:
            if is_last:
                found = list(cut_at_columns(piece, grid.columns))
            else:
                touched = columns_of(piece, grid.columns)
                goes_on = any(_is_in_line(piece, below) for below in grid.rows[at + 1].pieces)
                found = [(touched if goes_on else list(_span(piece, touched, row, grid)), piece)]
            for over, part in found:
                for column in over:
                    parts[column].append(part.cell)
    return [join_cells(cells) for cells in parts]


def _is_in_line(piece: RowPiece, below: RowPiece) -> bool:
    """Whether a piece begins or ends where the one below it does, as the lines of one name do, and overlaps it."""
    near = 0.3 * piece.size
    overlaps = piece.left < below.right and below.left < piece.right
    return overlaps and (abs(piece.left - below.left) < near or abs(piece.right - below.right) < near)


def _name_each(row: PrintedRow, columns: Sequence[PrintedColumn]) -> list[Cell]:
    """The pieces of a row, or its words, when there are as many as columns: names may be wider than what they name."""
    width = len(columns)
    if len(row.pieces) == width:
        return [piece.cell for piece in row.pieces]
    if all(len(columns_of(piece, columns)) == 1 for piece in row.pieces):
        return []
    words: list[Cell] = []
    for piece in row.pieces:
        words.append([])
        for character, box in piece.cell:
            if character == " ":
                words.append([])
            else:
                words[-1].append((character, box))
    words = [word for word in words if word]
    return words if len(words) == width else []


def _span(piece: RowPiece, touched: Sequence[int], row: PrintedRow, grid: Grid) -> Sequence[int]:
    """The columns over whose middle a name of several stands; those that it touches when there are none."""
    middle = piece.middle
    beside = [other.middle for other in row.pieces if other is not piece]
    best: Sequence[int] = touched
    for first in range(touched[0] + 1):
        for last in range(touched[-1], len(grid.columns)):
            span = range(first, last + 1)
            if len(span) <= len(best) or len(span) == len(grid.columns):
                continue
            if any(
                abs(other - grid.columns[at].middle) < abs(middle - grid.columns[at].middle)
                for other in beside
                for at in span
            ):
                continue
            left, right = grid.columns[first].left, grid.columns[last].right
            if abs((left + right) / 2 - middle) < max(_CENTRED * (right - left) / len(span), 0.5 * piece.size):
                best = span
    return best


def read_body(grid: Grid) -> list[Row]:
    """The rows of values: wrapped cells in one piece, what holds for the rows below it in each of them."""
    tight = _wrapping_pitch(grid)
    rows: list[tuple[Row, list[str]]] = []
    ahead: Row | None = None
    for at in range(grid.header_rows, len(grid.rows)):
        cells, texts = list(grid.cells[at]), list(grid.texts[at])
        pitch = grid.rows[at].middle - grid.rows[at - 1].middle if at > grid.header_rows else 0.0
        has_value = any(texts[column] for column in grid.values)
        only_first = bool(texts[0]) and not any(texts[1:])
        follower = grid.texts[at + 1] if at + 1 < len(grid.rows) else None
        if ahead is not None:
            cells = [join_cells([above, cell]) for above, cell in zip(ahead, cells, strict=True)]
            texts, ahead = [text_of(cell) for cell in cells], None
        elif not tight and only_first and follower and _is_begun(texts[0], follower, grid.values):
            ahead = cells
            continue
        if tight:
            is_rest = bool(rows) and 0 < pitch < tight
        else:
            is_rest = bool(rows) and not has_value and not texts[0]
            is_rest = is_rest and (bool(grid.values) or sum(map(bool, texts)) <= len(texts) / 2)
            is_rest = is_rest or (bool(rows) and not has_value and _is_end_of(rows[-1][1], texts))
        if is_rest:
            row = [join_cells([above, cell]) for above, cell in zip(rows[-1][0], cells, strict=True)]
            rows[-1] = row, [text_of(cell) for cell in row]
        else:
            rows.append((cells, texts))
    if ahead is not None:
        rows.append((ahead, [text_of(cell) for cell in ahead]))
    return _repeat_stubs(rows, grid.values)


def _wrapping_pitch(grid: Grid) -> float:
    """The distance below which a line goes on with the row above it; 0 where each line is a row of its own.

    Lines within a row stand closer than rows do, and hold less.
    """
    body = list(range(grid.header_rows + 1, len(grid.rows)))
    pitches = {at: (grid.rows[at].middle - grid.rows[at - 1].middle) / max(grid.rows[at].size, 1.0) for at in body}
    steps = sorted(pitches.values())
    jumps = [(above / below, (above + below) / 2) for below, above in pairwise(steps) if below > 0]
    widest, border = max(jumps, default=(1.0, 0.0))
    if widest < _TIGHT:
        return 0.0
    close = [at for at in body if pitches[at] < border]
    begun = [grid.header_rows, *(at for at in body if pitches[at] >= border)]

    def filled(rows: Sequence[int]) -> float:
        return sum(bool(text) for at in rows for text in grid.texts[at]) / (len(rows) * len(grid.columns))

    if not close or filled(begun) < _FULL_ROW or filled(close) > filled(begun) - _EMPTIER:
        return 0.0
    return border * max(row.size for row in grid.rows)


def _is_begun(text: str, follower: Sequence[str], values: Sequence[int]) -> bool:
    """Whether a name of two lines begins here, whose values stand in its second line."""
    is_long = len(text) >= _SHORTEST_BEGINNING
    return is_long and _goes_on(text, follower[0]) and any(follower[column] for column in values)


def _is_end_of(above: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether every cell goes on with the one above it, and fewer hold something."""
    filled = [(cell, below) for cell, below in zip(above, texts, strict=True) if below]
    return len(filled) < sum(map(bool, above)) and all(cell and _goes_on(cell, below) for cell, below in filled)


def _goes_on(above: str, below: str) -> bool:
    return bool(below) and below[0].islower() and not above.endswith((":", "."))


def _repeat_stubs(rows: Sequence[tuple[Row, list[str]]], values: Sequence[int]) -> list[Row]:
    """A name that stands once for several rows, in each of them: where only the first cells are empty."""
    repeated: list[Row] = []
    widths = [sum(map(bool, texts)) for _, texts in rows]
    for at, (row, texts) in enumerate(rows):
        empty = next((place for place, text in enumerate(texts) if text), 0)
        can_repeat = (
            0 < empty <= 2
            and repeated
            and not any(column < empty for column in values)
            and widths[at] >= len(row) - empty - 1
            and not is_total(texts[empty])
            and not is_value(texts[empty])
        )
        repeated.append([*repeated[-1][:empty], *row[empty:]] if can_repeat else list(row))
    return repeated
