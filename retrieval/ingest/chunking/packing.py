"""Runs of sentences and blocks that fit a limit. PURE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from retrieval.text.sentences import Break


@dataclass(frozen=True, slots=True)
class Unit:
    """What is not cut: a sentence, a block, or a piece of one too large. ``best_cut`` rates a cut right before it."""

    start: int
    end: int
    cost: int
    best_cut: Break
    is_prose: bool


def divide(text: str, unit: Unit, limit: int, *, by_line: bool) -> Iterator[tuple[int, int, Break]]:
    """Stretches of ``unit`` that hold its every non-space character: its lines, or some of about the size of the
    limit.
    """
    if by_line and "\n" in text[unit.start : unit.end]:
        at, cut = unit.start, unit.best_cut
        for line in text[unit.start : unit.end].split("\n"):
            if line.strip():
                yield at, at + len(line.rstrip()), cut
            cut = Break.SENTENCE if line.strip() else Break.PARAGRAPH
            at += len(line) + 1
        return
    at, cut = unit.start, unit.best_cut
    size = max(1, int((unit.end - unit.start) * limit / unit.cost * 0.9))
    size = min(size, max(1, (unit.end - unit.start) // 2))
    while at < unit.end:
        end = _find_cut(text, at, min(at + size, unit.end), unit.end)
        stretch = text[at:end]
        if stretch.strip():
            start = at + len(stretch) - len(stretch.lstrip())
            yield start, at + len(stretch.rstrip()), cut
            cut = Break.NONE
        at = end


def _find_cut(text: str, start: int, end: int, stop: int) -> int:
    """The best place to cut in the last third before ``end``: after a line, a clause, a word; ``end`` itself if there
    is none.
    """
    if end >= stop:
        return stop
    earliest = start + max(1, (end - start) * 2 // 3)
    for mark in ("\n", "; ", ", ", " ", ",", ";", "/"):
        at = text.rfind(mark, earliest, end)
        if at >= 0:
            return at + len(mark)
    return end


def pack(units: list[Unit], limit: int, overlap: float) -> Iterator[tuple[int, int]]:
    """Runs of units within ``limit``, of about the same size, each but the first beginning with the end of the one
    before.
    """
    left = sum(unit.cost for unit in units)
    shared = int(limit * overlap)
    first = done = 0
    while done < len(units):
        # As many passages as needed for what is left, all of one size, rather than full ones and a short last one.
        count = max(1, ceil((left - shared) / max(1, limit - shared)))
        target = limit if left <= limit else min(limit, shared + ceil((left - shared) / count))
        stop, used = first, 0
        while stop < len(units) and (stop <= done or (used < target and used + units[stop].cost <= limit)):
            used += units[stop].cost
            stop += 1
        if stop < len(units):
            stop = _find_best_stop(units, first, max(done + 1, first + 1), stop, used)
        yield units[first].start, units[stop - 1].end
        if stop == len(units):
            return
        left -= sum(unit.cost for unit in units[first:stop])
        begun, done, first, repeated = first, stop, stop, 0
        # Of code and tables nothing is repeated, except to keep a few last lines from standing alone.
        is_tail = sum(unit.cost for unit in units[done : done + 20]) <= limit // 8
        while first - 1 > begun and (units[first - 1].is_prose or is_tail):
            repeated += units[first - 1].cost
            if repeated > shared or repeated + units[done].cost > limit:
                break
            first -= 1
            left += units[first].cost


def _find_best_stop(units: list[Unit], first: int, earliest: int, stop: int, used: int) -> int:
    """The best cut that leaves at least two thirds of what was gathered; the last of equals."""
    best, left = stop, used
    for at in range(stop, earliest - 1, -1):
        if left * 3 < used * 2:
            break
        if units[at].best_cut > units[best].best_cut:
            best = at
        left -= units[at - 1].cost
    return best
