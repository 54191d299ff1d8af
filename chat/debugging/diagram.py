"""The stages of an answer as boxes and arrows, with coordinates. Pure Python.

The same steps are drawn twice: in two rows for a wide window, and one below the other for a phone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise


class StepState(StrEnum):
    """How a step went. `idle`: it ran and changed nothing."""

    OK = "ok"
    IDLE = "idle"
    OFF = "off"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """A stage, for people. ``badge`` is what stands in its corner: milliseconds, or a word for its state."""

    name: str
    title: str
    details: tuple[str, ...]
    state: StepState = StepState.OK
    badge: str = ""


@dataclass(frozen=True, slots=True)
class DiagramLine:
    text: str
    y: int


@dataclass(frozen=True, slots=True)
class Box:
    """A step at a place; ``title`` is as much of its title as fits beside the badge."""

    step: Step
    title: str
    x: int
    y: int
    width: int
    height: int
    lines: tuple[DiagramLine, ...]

    @property
    def text_x(self) -> int:
        return self.x + PADDING

    @property
    def title_y(self) -> int:
        return self.y + 21

    @property
    def badge_x(self) -> int:
        return self.x + self.width - PADDING

    @property
    def middle(self) -> int:
        return self.y + self.height // 2

    @property
    def centre(self) -> int:
        return self.x + self.width // 2


@dataclass(frozen=True, slots=True)
class Arrow:
    """``path`` is the line, ``head`` the points of the triangle at its end, both in SVG's notation."""

    path: str
    head: str


@dataclass(frozen=True, slots=True)
class Diagram:
    name: str
    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


PADDING = 11
LINE_HEIGHT = 15
# What a box needs above and below its lines.
FIRST_LINE = 38
# A line of so many units holds so many columns of the sans-serif face in 12 px, with room for a wide one.
UNITS_PER_COLUMN = 6.5
UNITS_PER_TITLE_COLUMN = 7.2
HEAD = 6

RETRIEVERS = ("vector", "lexical")
# A slot is a step, or steps that run at once.
Slot = str | tuple[str, ...]
ROWS: tuple[tuple[Slot, ...], ...] = (
    ("question", "reformulation", "classification", RETRIEVERS, "fusion"),
    ("rerank", "support", "context", "generator", "check"),
)


def wide(steps: Sequence[Step]) -> Diagram:
    """Two rows of five; the retrievers stand one above the other. ``steps`` are all those that ROWS names."""
    by_name = {step.name: step for step in steps}
    width, height, across, down = 196, 84, 23, 44
    first_row = 2 * height + 14
    boxes: dict[str, Box] = {}
    for number, row in enumerate(ROWS):
        for column, slot in enumerate(row):
            x = 1 + column * (width + across)
            if isinstance(slot, tuple):
                for place, retriever in enumerate(slot):
                    boxes[retriever] = _box(by_name[retriever], x, 1 + place * (height + 14), width, height, 3)
                continue
            y = 1 + ((first_row - height) // 2 if number == 0 else first_row + down)
            boxes[slot] = _box(by_name[slot], x, y, width, height, 3)
    arrows = [_sideways(boxes[a], boxes[b]) for a, b in _pairs(ROWS[0])]
    turn, target = boxes["fusion"], boxes["rerank"]
    between = 1 + first_row + down // 2
    arrows.append(
        Arrow(
            f"M{turn.centre} {turn.y + height}V{between}H{target.centre}V{target.y - HEAD}",
            _head_down(target.centre, target.y),
        )
    )
    arrows += [_sideways(boxes[a], boxes[b]) for a, b in _pairs(ROWS[1])]
    return Diagram(
        "wide", 5 * width + 4 * across + 2, first_row + down + height + 2, _ordered(boxes, steps), (*arrows,)
    )


def narrow(steps: Sequence[Step]) -> Diagram:
    """One column; the retrievers stand beside each other. ``steps`` are all those that ROWS names."""
    by_name = {step.name: step for step in steps}
    width, gap = 340, 20
    boxes: dict[str, Box] = {}
    y = 1
    for slot in (slot for row in ROWS for slot in row):
        if isinstance(slot, tuple):
            half = (width - 12) // 2
            beside = [
                _box(by_name[retriever], 1 + place * (half + 12), y, half, 0, 3) for place, retriever in enumerate(slot)
            ]
            height = max(box.height for box in beside)
            boxes |= {box.step.name: replace(box, height=height) for box in beside}
        else:
            boxes[slot] = _box(by_name[slot], 1, y, width, 0, 3)
            height = boxes[slot].height
        y += height + gap
    arrows = [_downwards(boxes[a], boxes[b]) for row in ROWS for a, b in _pairs(row)]
    arrows.append(_downwards(boxes["fusion"], boxes["rerank"]))
    return Diagram("narrow", width + 2, y - gap + 2, _ordered(boxes, steps), (*arrows,))


def wrapped(text: str, columns: int, lines: int) -> tuple[str, ...]:
    """The text in at most so many lines of so many columns each, "…" where it does not fit; wide letters take two."""
    rows: list[str] = []
    rest = " ".join(text.split())
    while rest and len(rows) < lines:
        fits = _fitting(rest, columns)
        if fits < len(rest) and len(rows) == lines - 1:
            rows.append(rest[: _fitting(rest, columns - 1)].rstrip() + "…")
            break
        at = fits
        if fits < len(rest) and rest[fits] != " " and (blank := rest.rfind(" ", 0, fits)) > 0:
            at = blank
        rows.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return tuple(rows)


def _fitting(text: str, columns: int) -> int:
    """How many characters of the text fit in so many columns; one at least."""
    taken = 0
    for place, character in enumerate(text):
        taken += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if taken > columns:
            return max(1, place)
    return len(text)


def _box(step: Step, x: int, y: int, width: int, height: int, lines: int) -> Box:
    """A box with at most so many lines; as high as they need, when ``height`` is 0."""
    columns = int((width - 2 * PADDING) / UNITS_PER_COLUMN)
    rows: list[str] = []
    for number, detail in enumerate(step.details):
        # Each later detail keeps a line of its own, as far as there are lines.
        free = lines - len(rows) - min(len(step.details) - number - 1, lines - len(rows) - 1)
        rows += wrapped(detail, columns, free) if len(rows) < lines else ()
    beside = width - 2 * PADDING - int(UNITS_PER_COLUMN * (len(step.badge) + 1))
    mark = 2 if step.state is StepState.FAILED else 0
    title = wrapped(step.title, int(beside / UNITS_PER_TITLE_COLUMN) - mark, 1)
    height = height or FIRST_LINE + LINE_HEIGHT * max(1, len(rows))
    return Box(
        step,
        "".join(title),
        x,
        y,
        width,
        height,
        tuple(DiagramLine(row, y + 40 + LINE_HEIGHT * place) for place, row in enumerate(rows)),
    )


def _ordered(boxes: Mapping[str, Box], steps: Sequence[Step]) -> tuple[Box, ...]:
    return tuple(boxes[step.name] for step in steps if step.name in boxes)


def _pairs(row: Sequence[Slot]) -> list[tuple[str, str]]:
    """What is joined by an arrow in a row: each with the next one, and each retriever with its neighbours."""

    def names(slot: Slot) -> tuple[str, ...]:
        return (slot,) if isinstance(slot, str) else slot

    return [(a, b) for left, right in pairwise(row) for a in names(left) for b in names(right)]


def _sideways(start: Box, end: Box) -> Arrow:
    x, y = start.x + start.width, start.middle
    bend = (x + end.x) // 2
    path = f"M{x} {y}H{bend}V{end.middle}H{end.x - HEAD}" if y != end.middle else f"M{x} {y}H{end.x - HEAD}"
    return Arrow(path, f"{end.x},{end.middle} {end.x - HEAD},{end.middle - 4} {end.x - HEAD},{end.middle + 4}")


def _downwards(start: Box, end: Box) -> Arrow:
    y = start.y + start.height
    bend = (y + end.y) // 2
    # Two boxes beside each other are reached, and left, above their own middles.
    if start.centre == end.centre:
        path = f"M{start.centre} {y}V{end.y - HEAD}"
    else:
        path = f"M{start.centre} {y}V{bend}H{end.centre}V{end.y - HEAD}"
    return Arrow(path, _head_down(end.centre, end.y))


def _head_down(x: int, y: int) -> str:
    return f"{x},{y} {x - 4},{y - HEAD} {x + 4},{y - HEAD}"
