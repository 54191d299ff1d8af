"""Procedures whose steps are sections of their own, each below a numbered heading. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.text.sentences import strip_range

# "1. Clone the repository", "Step 2: merge". Chapters of a book are numbered too, but mostly without a full stop.
_STEP = re.compile(r"(?P<word>(?:step|stap)\s{0,3})?(?P<number>\d{1,2})(?P<mark>\s?[.:)–—-])?(?=\s|$)", re.I)
_FEWEST_STEPS = 3
_LONGEST_PROCEDURE = 12_000


@dataclass(frozen=True, slots=True)
class Procedure:
    """``text[start:end]`` of a document: sections that count from 1. ``steps`` are the lines of their headings.

    Blocks lie within its sections. ``heading_start`` is the heading before the first step, which names it; None where
    there is none.
    """

    start: int
    end: int
    steps: tuple[tuple[int, int], ...]
    heading_start: int | None


def find_procedures(text: str, sections: Sequence[tuple[int, int, str]]) -> list[Procedure]:
    """The procedures among the sections, which are given by start, level and title, in order."""
    found: list[Procedure] = []
    # Of each level, the numbered headings in a row, as places in ``sections``.
    open_rows: dict[int, list[int]] = {}
    for at, (_, level, title) in enumerate([*sections, (len(text), 0, "")]):
        for deeper in [known for known in open_rows if known > level]:
            _close(text, sections, open_rows.pop(deeper), at, found)
        number = _read_number(title)
        row = open_rows.get(level, [])
        if row and number != len(row) + 1:
            _close(text, sections, open_rows.pop(level), at, found)
            row = []
        if number == len(row) + 1:
            open_rows[level] = [*row, at]
    for row in open_rows.values():
        _close(text, sections, row, len(sections), found)
    return sorted(found, key=lambda procedure: procedure.start)


def _read_number(title: str) -> int:
    """The number of the step that the heading names; 0 for none."""
    match = _STEP.match(title)
    return int(match["number"]) if match and (match["word"] or match["mark"]) else 0


def _close(
    text: str, sections: Sequence[tuple[int, int, str]], row: Sequence[int], after: int, found: list[Procedure]
) -> None:
    end = sections[after][0] if after < len(sections) else len(text)
    if len(row) < _FEWEST_STEPS or end - sections[row[0]][0] > _LONGEST_PROCEDURE:
        return
    start, last = strip_range(text, sections[row[0]][0], end)
    steps = tuple(_line(text, sections[at][0], last) for at in row)
    found.append(Procedure(start, last, steps, sections[row[0] - 1][0] if row[0] else None))


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """The heading's own line; of reStructuredText, the one below its link targets and overline."""
    at = start
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        if re.search(r"\w", text[at:stop]) and not text.startswith(".. ", at):
            return at, stop
        at = stop + 1
    return start, end
