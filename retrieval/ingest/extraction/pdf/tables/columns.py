"""Columns of printed rows: pieces of text, and the gaps that hardly any of them crosses. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from retrieval.ingest.extraction.pdf.printed import PrintedLine
from retrieval.ingest.extraction.pdf.tables.rows import Cell, trim

# As multiples of the font's size: what parts two cells, and what may stand between two columns.
_GAP = 0.9
_CORRIDOR = 0.45
_LEVEL = 0.45
# Dots that lead from a name to its values may stand one by one.
_FEWEST_DOTS = 4
_LEADERS = " .…·_"
_MARKER = re.compile(r"[-*+•‣◦▪●·–—]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)]|\[\d{1,3}\]")


@dataclass(slots=True)
class RowPiece:
    """Text of one row without a wide gap in it. ``is_led`` when dots lead from it to the next."""

    cell: Cell
    line: PrintedLine
    text: str
    left: float
    right: float
    is_led: bool = False

    @property
    def size(self) -> float:
        return self.line.size

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


@dataclass(slots=True)
class PrintedRow:
    """``lines`` are those that it is made of, also where nothing but dots stands in them."""

    pieces: list[RowPiece]
    middle: float
    size: float
    lines: list[PrintedLine]

    @property
    def is_bold(self) -> bool:
        return all(piece.line.is_bold for piece in self.pieces)

    @property
    def left(self) -> float:
        return self.pieces[0].left

    @property
    def right(self) -> float:
        return max(piece.right for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class PrintedColumn:
    left: float
    right: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


def make_piece(cell: Cell, line: PrintedLine) -> RowPiece | None:
    """None for what is nothing but leaders and blanks."""
    cell = trim(cell)
    text = "".join(character for character, _ in cell)
    length = len(text.rstrip(_LEADERS))
    is_led = sum(sign != " " for sign in text[length:]) >= _FEWEST_DOTS
    if is_led:
        cell = cell[:length]
        text = text[:length]
    if not text:
        return None
    return RowPiece(cell, line, text, cell[0][1][0], max(box[2] for _, box in cell), is_led)


def cut_line(line: PrintedLine) -> list[RowPiece]:
    """The pieces of a line, which wide gaps part."""
    pieces: list[Cell] = [[]]
    for character, box in zip(line.text, line.boxes, strict=True):
        if character == " " and box[2] - box[0] > _GAP * line.size and pieces[-1]:
            pieces.append([])
        pieces[-1].append((character, box))
    return [piece for cell in pieces if cell and (piece := make_piece(cell, line)) is not None]


def find_rows(lines: Sequence[PrintedLine]) -> list[PrintedRow]:
    """The rows of a page from top to bottom; a bullet or a number of a list stands with what follows it."""
    groups: list[list[PrintedLine]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        last = groups[-1] if groups else []
        if last and line.middle - median(other.middle for other in last) < _LEVEL * max(line.size, last[0].size):
            last.append(line)
        else:
            groups.append([line])
    rows = []
    for group in groups:
        pieces = sorted((piece for line in group for piece in cut_line(line)), key=lambda piece: piece.left)
        if sum(piece.text == "." for piece in pieces) >= _FEWEST_DOTS:
            pieces = [piece for piece in pieces if piece.text != "."]
            if pieces and pieces[0].text.endswith("."):
                pieces[0] = replace(pieces[0], cell=pieces[0].cell[:-1], text=pieces[0].text[:-1])
        if len(pieces) > 1 and _MARKER.fullmatch(pieces[0].text):
            pieces = [join_pieces(pieces[0], pieces[1]), *pieces[2:]]
        if pieces:
            middle = median(piece.line.middle for piece in pieces)
            rows.append(PrintedRow(pieces, middle, max(piece.size for piece in pieces), group))
    return rows


def join_pieces(first: RowPiece, second: RowPiece) -> RowPiece:
    cell = [*first.cell, (" ", first.cell[-1][1]), *second.cell]
    return RowPiece(
        cell, second.line, f"{first.text} {second.text}", first.left, max(first.right, second.right), second.is_led
    )


def find_columns(rows: Sequence[PrintedRow], size: float, *, slack: int) -> list[PrintedColumn]:
    """The columns between gaps that at most ``slack`` of ``rows`` cross."""
    edges: list[tuple[float, int]] = []
    for row in rows:
        for piece in row.pieces:
            edges += [(piece.left, 1), (max(piece.right, piece.left + 0.1), -1)]
    columns: list[PrintedColumn] = []
    depth, start = 0, 0.0
    end: float | None = None
    for at, step in sorted(edges):
        before, depth = depth, depth + step
        if before <= slack < depth:
            if end is None or at - end >= _CORRIDOR * size:
                if end is not None:
                    columns.append(PrintedColumn(start, end))
                start = at
            end = None
        elif depth <= slack < before:
            end = at
    if end is not None:
        columns.append(PrintedColumn(start, end))
    return _tighten(columns, rows)


def _tighten(columns: Sequence[PrintedColumn], rows: Sequence[PrintedRow]) -> list[PrintedColumn]:
    """The columns as wide as the pieces that stand in one of them alone."""
    tight = []
    for at, column in enumerate(columns):
        left = columns[at - 1].right if at else float("-inf")
        right = columns[at + 1].left if at + 1 < len(columns) else float("inf")
        own = [
            piece
            for row in rows
            for piece in row.pieces
            if left < piece.left and piece.right < right and piece.left < column.right and piece.right > column.left
        ]
        if own:
            tight.append(PrintedColumn(min(piece.left for piece in own), max(piece.right for piece in own)))
    return tight


def columns_of(piece: RowPiece, columns: Sequence[PrintedColumn]) -> list[int]:
    """Which of ``columns`` a piece stands in, or the nearest."""
    touched = [
        at for at, column in enumerate(columns) if min(piece.right, column.right) - max(piece.left, column.left) > 0.5
    ]
    if touched:
        return touched
    middle = (piece.left + piece.right) / 2
    return [min(range(len(columns)), key=lambda at: max(columns[at].left - middle, middle - columns[at].right))]


def cut_at_columns(piece: RowPiece, columns: Sequence[PrintedColumn]) -> Iterator[tuple[list[int], RowPiece]]:
    """The piece with the columns that it stands in, cut where a word begins at the very edge of one."""
    touched = columns_of(piece, columns)
    if len(touched) == 1:
        yield touched, piece
        return
    if words := _one_word_each(piece, touched, columns):
        yield from words
        return
    rest = piece.cell
    place = touched[0]
    for at in touched[1:]:
        begin = columns[at].left
        cut = next(
            (
                index
                for index, (character, box) in enumerate(rest)
                if index and rest[index - 1][0] == " " and character != " " and abs(box[0] - begin) < 0.35 * piece.size
            ),
            None,
        )
        if cut is None:
            continue
        first = make_piece(rest[:cut], piece.line)
        if first is not None:
            yield list(range(place, at)), first
        rest, place = rest[cut:], at
    last = make_piece(rest, piece.line)
    if last is not None:
        yield list(range(place, touched[-1] + 1)), last


def _one_word_each(
    piece: RowPiece, touched: Sequence[int], columns: Sequence[PrintedColumn]
) -> list[tuple[list[int], RowPiece]] | None:
    """The words of a piece by the columns in whose middle they stand, if there are some for each column."""
    words: list[Cell] = [[]]
    for character, box in piece.cell:
        if character == " ":
            words.append([])
        else:
            words[-1].append((character, box))
    found: dict[int, Cell] = {}
    for word in filter(None, words):
        middle = (word[0][1][0] + word[-1][1][2]) / 2
        at = min(touched, key=lambda at: abs(columns[at].middle - middle))
        found[at] = [*found[at], (" ", word[0][1]), *word] if at in found else word
    if set(found) != set(touched):
        return None
    parts = [(at, make_piece(found[at], piece.line)) for at in touched]
    return [([at], part) for at, part in parts if part is not None]


def is_fixed_pitch(rows: Sequence[PrintedRow]) -> bool:
    """Whether narrow letters are as wide as others, as in what a program printed."""
    narrow, wide = [], []
    for row in rows:
        for piece in row.pieces:
            for sign, box in piece.cell:
                if sign in "ilIj.,:;()[]|!'-":
                    narrow.append((box[2] - box[0]) / piece.size)
                elif sign.isalnum():
                    wide.append((box[2] - box[0]) / piece.size)
    return len(narrow) >= 3 and len(wide) >= 3 and median(narrow) >= 0.9 * median(wide)
