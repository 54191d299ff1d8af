"""reStructuredText, read by its adornments and indentation alone: no directive is ever executed."""

from __future__ import annotations

import itertools
import re

from retrieval.ingest.extraction.lines import find_line_starts, plain_title
from retrieval.ingest.extraction.types import Section, Span

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+")
_SIGNALS = re.compile(r"^\.\. |::[^\S\n]*+$|:[\w:-]{1,60}:`|(?<!`)``[^`\n]++``|(?<!`)`[^`\n]++`_", re.M)
_CODE = re.compile(
    r"\s*\.\. (?:code-block|code|sourcecode|parsed-literal|console|highlight|math|csv-table|list-table|table|prompt)::"
)
_TARGET = re.compile(r"\.\. (?:_[^:`]{1,100}|_`[^`]{1,100}`|[\w-]{1,40}:: ?.{0,100}|index:: .{0,100}):?")
_DIRECTIVE = re.compile(r"\s*\.\. ")
_GRID = re.compile(r"\s*\+[-=+]{3,}\+\s*")
_SIMPLE_TABLE = re.compile(r"\s*=+(?: +=+)+\s*")


def has_markup(text: str) -> bool:
    """Whether ``text`` holds what only reStructuredText holds: directives, roles, literals."""
    return bool(_SIGNALS.search(text))


def parse_structure(text: str) -> tuple[list[Section], list[Span]]:
    """The underlined headings of ``text``, and its literal blocks, code directives and tables.

    Levels follow the order in which the styles of adornment first occur, as docutils has it. A heading starts at column
    0 outside of any literal block, and its underline is at least as long as its title, give or take two characters. Its
    section begins with the link targets and index entries right above it.
    """
    starts = find_line_starts(text)
    lines = [text[start:end].rstrip() for start, end in itertools.pairwise(starts)]
    sections: list[Section] = []
    protected: list[Span] = []
    styles: list[tuple[str, bool]] = []
    at = floor = 0
    while at < len(lines):
        line = lines[at]
        end = _find_block_end(lines, at)
        if end > at:
            protected.append(Span(starts[at], starts[end - 1] + len(lines[end - 1])))
            at = floor = end
            continue
        height = _measure_heading(lines, at)
        if height:
            style = (lines[at + height - 1][0], height == 3)
            if style not in styles:
                styles.append(style)
            title = plain_title(lines[at + height - 2])
            if title:
                sections.append(Section(starts[_find_lead(lines, at, floor)], styles.index(style) + 1, title))
            at += height
            floor = at
        elif line.endswith("::") and not _DIRECTIVE.match(line):
            block = at + 1
            while block < len(lines) and not lines[block]:
                block += 1
            end = _find_indented_end(lines, block, _measure_indent(line))
            if end > block:
                protected.append(Span(starts[block], starts[end - 1] + len(lines[end - 1])))
            at = floor = max(end, at + 1)
        else:
            at += 1
    return sections, protected


def _measure_heading(lines: list[str], at: int) -> int:
    """2 for a title and its underline at ``at``, 3 with an overline, else 0."""
    if (at and lines[at - 1]) or at + 1 >= len(lines) or not lines[at]:
        return 0
    first = _ADORNMENT.fullmatch(lines[at])
    if first:
        if (
            at + 2 < len(lines)
            and lines[at + 2] == lines[at]
            and lines[at + 1].strip()
            and not _ADORNMENT.fullmatch(lines[at + 1])
        ):
            return 3 if _fits(lines[at], lines[at + 1].strip()) else 0
        return 0
    title = lines[at]
    if title[0].isspace() or not _ADORNMENT.fullmatch(lines[at + 1]) or title.startswith((".. ", ">>> ")):
        return 0
    return 2 if _fits(lines[at + 1], title) else 0


def _find_lead(lines: list[str], at: int, floor: int) -> int:
    """The first line of the targets and one-line directives that stand right above the heading at ``at``."""
    lead = above = at
    while above > floor and (not lines[above - 1] or _TARGET.fullmatch(lines[above - 1])):
        above -= 1
        if lines[above]:
            lead = above
    return lead


def _fits(adornment: str, title: str) -> bool:
    return len(adornment) >= max(2, min(len(title) - 2, 60)) and bool(re.search(r"\w", title))


def _find_block_end(lines: list[str], at: int) -> int:
    """The line after the code directive or table that starts at ``at``; ``at`` itself when none does."""
    line = lines[at]
    if _CODE.match(line):
        return max(_find_indented_end(lines, at + 1, _measure_indent(line)), at + 1)
    if _GRID.fullmatch(line):
        end = at
        while end < len(lines) and lines[end].lstrip().startswith(("+", "|")):
            end += 1
        return end
    if _SIMPLE_TABLE.fullmatch(line):
        for end in range(at + 1, min(at + 500, len(lines))):
            if _SIMPLE_TABLE.fullmatch(lines[end]) and (end + 1 == len(lines) or not lines[end + 1]):
                return end + 1
    return at


def _find_indented_end(lines: list[str], start: int, indent: int) -> int:
    """The line after the last one of the block from ``start`` on that stands deeper than ``indent``."""
    end = start
    for at in range(start, len(lines)):
        if lines[at]:
            if _measure_indent(lines[at]) <= indent:
                break
            end = at + 1
    return end


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
