"""Describe the lines of printed pages (from PDF files or OCR), and sort them into reading order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from retrieval.documents.extraction.grouping import group_consecutive
from retrieval.text.word_lists import read_words

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, from the upper left corner of a page whose text is upright."""


@dataclass(slots=True)
class PrintedLine:
    """A printed line of a page, or a part of one between wide gaps.

    - ``boxes`` has a box for each character.
    - ``size`` is the font size in points.
    - ``follows``: the part continues the printed line of the part before it.
    - ``is_row``: the text is a table row in Markdown.
    """

    text: str
    box: Box
    size: float
    is_bold: bool = False
    follows: bool = False
    boxes: list[Box] = field(default_factory=list)
    is_row: bool = False

    @property
    def left(self) -> float:
        return self.box[0]

    @property
    def top(self) -> float:
        return self.box[1]

    @property
    def right(self) -> float:
        return self.box[2]

    @property
    def bottom(self) -> float:
        return self.box[3]

    @property
    def middle_y(self) -> float:
        return (self.box[1] + self.box[3]) / 2


@dataclass(slots=True)
class PrintedPage:
    """A page's lines in reading order.

    - ``width`` and ``height`` are in points. The page is upright: most of its text is horizontal.
    - ``turned`` is the rotation with which a PDF viewer shows the page: 0, 90, 180 or 270 degrees clockwise.
    - ``unmapped`` is the share of characters that the PDF does not map to Unicode.
    - ``controls`` is the share of control characters.
    - ``aside`` has the lines that run in another direction.
    """

    width: float
    height: float
    lines: list[PrintedLine]
    turned: int = 0
    words: str = ""
    unmapped: float = 0.0
    controls: float = 0.0
    aside: list[PrintedLine] = field(default_factory=list)


def turn_box(box: Box, degrees: int, width: float, height: float) -> Box:
    """Return the box after a clockwise rotation of the page. ``width`` and ``height`` are the rotated page's."""
    x1, y1, x2, y2 = box
    if degrees == 90:
        return width - y2, x1, width - y1, x2
    if degrees == 180:
        return width - x2, height - y2, width - x1, height - y1
    if degrees == 270:
        return y1, height - x2, y2, height - x1
    return box


def find_surrounding_box(boxes: Iterable[Box]) -> Box:
    """Return a box from the leftmost to the rightmost side of ``boxes``, with their median top and bottom."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), median(tops), max(rights), median(bottoms)


def join_lines(left: PrintedLine, right: PrintedLine) -> PrintedLine:
    gap = (left.right, left.top, max(left.right, right.left), left.bottom)
    box = (left.left, min(left.top, right.top), right.right, max(left.bottom, right.bottom))
    longer = max(left, right, key=lambda line: len(line.text))
    return PrintedLine(
        f"{left.text} {right.text}",
        box,
        longer.size,
        left.is_bold and right.is_bold,
        left.follows,
        [*left.boxes, gap, *right.boxes] if left.boxes else [],
    )


CUT_WORD = re.compile(r"(?<![^\W\d_])([^\W\d_]++)-$")
REST_OF_WORD = re.compile(r"[^\W\d_A-Z]\w*+(-\w)?")
_FIRST_PARTS = read_words("documents", "hyphenated")
_LONGEST_ENDING = 4


def is_compound_hyphen(before: str, cut: re.Match[str], rest: re.Match[str]) -> bool:
    """Return whether the hyphen at the end of a line belongs to a compound word, so that it must be kept.

    ``before`` is the line, ``cut`` the match of its last word, ``rest`` the match at the start of the next line.
    """
    part, goes_on = cut[1], rest[0]
    return (
        before[: cut.start()].endswith("-")
        or rest[1] is not None
        or len(part) == 1
        or (part.isupper() and goes_on.islower())
        or (part[-1].lower() == goes_on[0] and goes_on[0] in "aeiou")
        or (part.lower() in _FIRST_PARTS and len(goes_on) > _LONGEST_ENDING)
    )


_LINE_HEIGHT = 14.0


def insert_text_at(lines: list[PrintedLine], text: str, box: Box) -> None:
    """Insert ``text`` into the line at the height of ``box``, or else as a line of its own."""
    rows = [row for row in map(str.strip, re.split(r"[\r\n]++", text)) if row]
    height = min(_LINE_HEIGHT, (box[3] - box[1]) / len(rows)) if len(rows) > 1 else box[3] - box[1]
    for at, row in enumerate(rows):
        _insert_row_at(lines, row, (box[0], box[1] + at * height, box[2], box[1] + (at + 1) * height))


def _insert_row_at(lines: list[PrintedLine], text: str, box: Box) -> None:
    left, top, right, bottom = box
    beside = [(line, _find_word_start(line, left)) for line in lines if top - 2 <= line.middle_y <= bottom + 2]
    near, at = min(
        ((line, at) for line, at in beside if at is not None),
        key=lambda found: (
            max(left - found[0].right, found[0].left - right, 0.0),
            abs(2 * found[0].middle_y - top - bottom),
        ),
        default=(None, 0),
    )
    size = near.size if near else median(line.size for line in lines) if lines else 10.0
    top, bottom = (near.top, near.bottom) if near else (top, bottom)
    step = min(0.5 * size, (right - left) / len(text))
    boxes = [(left + at * step, top, left + (at + 1) * step, bottom) for at in range(len(text))]
    placed = PrintedLine(text, (left, top, boxes[-1][2], bottom), size, boxes=boxes)
    if near is None:
        lower = (at for at, line in enumerate(lines) if line.middle_y > placed.middle_y)
        lines.insert(next(lower, len(lines)), placed)
    elif near.boxes and (at or 0 <= near.left - left < right - left + size):
        edge = near.boxes[at - 1] if at else near.boxes[0]
        boxes = boxes if at else [edge] * len(boxes)
        near.text = f"{near.text[:at]} {text} {near.text[at:]}" if at else f"{text} {near.text}"
        near.boxes[at:at] = [boxes[0], *boxes, boxes[-1]] if at else [*boxes, edge]
    elif at is not None and near.right <= left:
        placed.follows = True
        lines.insert(lines.index(near) + 1, placed)
    else:
        placed.follows, near.follows = near.follows, True
        lines.insert(lines.index(near), placed)


def _find_word_start(line: PrintedLine, left: float) -> int | None:
    """Return the offset in the line of the first word to the right of ``left``.

    The result is 0 if ``left`` is outside the line, and None if ``left`` is within a word.
    """
    if not line.left < left < line.right:
        return 0
    at = next((at for at, box in enumerate(line.boxes) if box[0] >= left - 1), len(line.boxes))
    return at if line.text[at - 1 : at] == " " else None


# Running titles are within this share of the page's height from its top or bottom.
_EDGE = 0.08
_FEWEST_LINES, _FEWEST_SHORT = 4, 3
_PROSE_CHARACTERS = 15
_MOST_CROSSING = 0.5
# Largest distance between lines of a column, in font sizes.
_CLOSE = 2.5
_LEVEL = 0.5


def order_lines(lines: Sequence[PrintedLine], height: float) -> list[PrintedLine]:
    """Return ``lines`` in reading order. Parts of a row become one line, except in columns of prose."""
    return _join_rows(_separate_columns(_order_by_position(list(lines)) if _has_upward_jump(lines, height) else lines))


def _join_rows(lines: Sequence[PrintedLine]) -> list[PrintedLine]:
    joined: list[PrintedLine] = []
    for line in lines:
        above = joined[-1] if joined else None
        if (
            above is not None
            and line.follows
            and above.right <= line.left + line.size
            and abs(above.middle_y - line.middle_y) < _LEVEL * max(above.size, line.size)
        ):
            joined[-1] = join_lines(above, line)
        else:
            joined.append(line)
    return joined


def _has_upward_jump(lines: Sequence[PrintedLine], height: float) -> bool:
    body = [line for line in lines if _EDGE * height < line.middle_y < (1 - _EDGE) * height]
    return any(
        below.bottom <= line.top + 1 and below.left < line.right - line.size
        for line, below in pairwise(body)
        if not below.follows
    )


def _find_gutter(lines: Sequence[PrintedLine]) -> float | None:
    """Return the x position of the gap after the first column; None if the page has one column."""
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
        lowest = min(max(line.bottom for line in before), max(line.bottom for line in after))
        if lowest <= max(min(line.top for line in before), min(line.top for line in after)):
            continue
        score = fewest - crossing
        if best is None or (score, -place) > (best[0], -best[1]):
            best = score, place
    return best[1] if best else None


def _separate_columns(lines: Sequence[PrintedLine]) -> list[PrintedLine]:
    rows = group_consecutive(lines, lambda _row, line: line.follows)
    ordered: list[PrintedLine] = []
    block: list[list[PrintedLine]] = []
    columns: list[list[PrintedLine]] = []
    for row in [*rows, []]:
        places = [_find_column_index(line, columns) for line in row]
        if block and row and None not in places:
            block.append(row)
        else:
            if len(columns) > 1 and all(map(_is_prose, columns)):
                for line in (line for below in block for line in below):
                    line.follows = False
                block = columns
            ordered += [line for part in block for line in part]
            block, columns, places = [row], [[] for _ in row], list(range(len(row)))
        for at, line in zip(places, row, strict=True):
            columns[at or 0].append(line)
    return ordered


def _find_column_index(line: PrintedLine, columns: Sequence[Sequence[PrintedLine]]) -> int | None:
    for at, column in enumerate(columns):
        is_right = at == 0 or max(other.right for other in columns[at - 1]) <= line.left
        is_left = at + 1 == len(columns) or line.right <= min(other.left for other in columns[at + 1])
        if is_right and is_left and len(columns) > 1:
            return at if 0 < line.middle_y - column[-1].middle_y < _CLOSE * line.size else None
    return None


def _is_prose(column: Sequence[PrintedLine]) -> bool:
    left, right = min(line.left for line in column), max(line.right for line in column)
    full = [line for line in column if line.right - line.left > 0.8 * (right - left)]
    goes_on = [below for line, below in pairwise(column) if line.text[-1:].isalpha() or line.text[-1:] in ",-"]
    # A number may begin a list item, so it does not show whether a sentence continues.
    pairs = [(line, below) for line, below in pairwise(column) if not below.text[:1].isdigit()]
    small = [below for line, below in pairs if line.text[-1:] not in ".:!?" and below.text[:1].islower()]
    words = sum(len(line.text.split()) for line in column)
    if len(column) >= _FEWEST_SHORT and len(small) >= max(1, 0.6 * len(pairs)) and words >= 3 * (len(column) - 1):
        return True
    return len(column) >= _FEWEST_LINES and len(full) >= 0.6 * len(column) and len(goes_on) >= 0.5 * len(column)


def _order_by_position(lines: list[PrintedLine]) -> list[PrintedLine]:
    gutter = _find_gutter(sorted(lines, key=lambda line: line.top))
    if gutter is None:
        return _order_by_rows(lines)
    ordered: list[PrintedLine] = []
    crossing = sorted((line for line in lines if line.left < gutter < line.right), key=lambda line: line.top)
    columns = [line for line in lines if not line.left < gutter < line.right]
    for line in crossing:
        above = [other for other in columns if other.middle_y < line.middle_y]
        columns = [other for other in columns if other.middle_y >= line.middle_y]
        ordered += _order_both_columns(above, gutter)
        line.follows = False
        ordered.append(line)
    return ordered + _order_both_columns(columns, gutter)


def _order_both_columns(lines: list[PrintedLine], gutter: float) -> list[PrintedLine]:
    first = [line for line in lines if line.right <= gutter]
    second = [line for line in lines if line.right > gutter]
    return (_order_by_position(first) if first else []) + (_order_by_position(second) if second else [])


def _order_by_rows(lines: list[PrintedLine]) -> list[PrintedLine]:
    rows = group_consecutive(
        sorted(lines, key=lambda line: line.middle_y),
        lambda row, line: line.middle_y - row[0].middle_y < _LEVEL * min(line.size, row[0].size),
    )
    ordered: list[PrintedLine] = []
    for row in rows:
        row.sort(key=lambda line: line.left)
        for at, line in enumerate(row):
            line.follows = at > 0
        ordered += row
    return ordered
