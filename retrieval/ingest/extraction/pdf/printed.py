"""Lines of printed pages: what both a PDF file's own text and recognised text consist of. PURE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, from the upper left corner of a page whose text is upright."""


@dataclass(slots=True)
class PrintedLine:
    """A line, or the part of one that a wide gap sets off. ``boxes`` has one box a character of ``text``; ``size`` is
    the font's in points. ``follows`` says that it stands on the same row as the line before it,
    ``is_row`` that it is a row of a table in Markdown's form."""

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
    def middle(self) -> float:
        return (self.box[1] + self.box[3]) / 2


@dataclass(slots=True)
class PrintedPage:
    """The lines of a page in the order in which they are read.

    ``width`` and ``height`` are in points, of the page held so that its text is upright; to be as it is shown, it is
    turned by so many degrees, clockwise.
    """

    width: float
    height: float
    lines: list[PrintedLine]
    turned: int = 0


def turn_box(box: Box, degrees: int, width: float, height: float) -> Box:
    """A box of a page that is turned clockwise, on the turned page, which is ``width`` wide and ``height`` high."""
    x1, y1, x2, y2 = box
    if degrees == 90:
        return width - y2, x1, width - y1, x2
    if degrees == 180:
        return width - x2, height - y2, width - x1, height - y1
    if degrees == 270:
        return y1, height - x2, y2, height - x1
    return box


def around(boxes: Iterable[Box]) -> Box:
    """The box of a line: as wide as ``boxes``, which are not empty, and as high as most of them."""
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), median(tops), max(rights), median(bottoms)


def join_lines(left: PrintedLine, right: PrintedLine) -> PrintedLine:
    """Two parts of a row as one line."""
    gap = (left.right, left.top, max(left.right, right.left), left.bottom)
    box = (left.left, min(left.top, right.top), right.right, max(left.bottom, right.bottom))
    # The longer part says how the line is printed.
    longer = max(left, right, key=lambda line: len(line.text))
    return PrintedLine(
        f"{left.text} {right.text}",
        box,
        longer.size,
        left.is_bold and right.is_bold,
        left.follows,
        [*left.boxes, gap, *right.boxes] if left.boxes else [],
    )
