"""Plain text and source code as pages to read, with the passage marked. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from retrieval.text.sentences import strip_range

# Source code as numbered lines of HTML, with the passage marked.

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LINES_IN_PART = 200


def render_code_lines(text: str, passage: tuple[int, int] | None, line_label: str = "{}") -> list[str]:
    """The HTML of the lines, in parts of 200. Line n has the id ``Ln``, and the first marked words have ``passage``.

    ``line_label`` names a line to screen readers. A line's end belongs to it, so the words of all parts are ``text``.
    """
    start, end = passage or (0, 0)
    lines: list[str] = []
    position = 0
    for number, line in enumerate(_LINE.findall(text) or [""], 1):
        first, last = (min(max(cut - position, 0), len(line)) for cut in (start, end))
        before, marked, after = (escape(part, quote=False) for part in (line[:first], line[first:last], line[last:]))
        if marked:
            marked = f'<mark id="passage">{marked}</mark>' if start >= position else f"<mark>{marked}</mark>"
        anchor = (
            f'<a class="line-number" id="L{number}" href="#L{number}" data-line="{number}"'
            f' aria-label="{escape(line_label.format(number))}"{"" if marked else " tabindex=-1"}></a>'
        )
        lines.append(f'<span class="line{" is-marked" if marked else ""}">{anchor}{before}{marked}{after}</span>')
        position += len(line)
    return ["".join(lines[at : at + _LINES_IN_PART]) for at in range(0, len(lines), _LINES_IN_PART)]


# A browser lays out what is near the window only when the text comes in parts.
_PART_CHARACTERS = 12_000
_SHORTEST_WRAPPED_LINE = 40
_BEGINS_ENTRY = re.compile(r"\s*(?:[-*+•–—▪◦]\s|\(?(?:\d{1,3}|[a-z])[.)]\s)|\s{4,}")


@dataclass(frozen=True, slots=True)
class TextRun:
    """A run of text of one kind. ``is_first_marked`` is where the page scrolls to."""

    text: str
    marked: bool = False
    is_first_marked: bool = False
    heading_level: int = 0
    anchor: str = ""
    page: int | None = None  # The page that begins here.

    @property
    def syntax(self) -> str:
        """The Markdown signs a heading begins with."""
        return self.text[: len(self.text) - len(self.text.lstrip("#").lstrip(" "))] if self.text[:1] == "#" else ""

    @property
    def words(self) -> str:
        return self.text[len(self.syntax) :]


@dataclass(frozen=True, slots=True)
class Heading:
    start: int
    level: int
    title: str
    is_current: bool = False

    @property
    def anchor(self) -> str:
        return f"section-{self.start}"


def parse_passage(text: str, start: str | None, end: str | None) -> tuple[int, int] | None:
    """The passage that two query parameters name, without blanks at its ends; None when they name no words."""
    if not (start and end and start.isdecimal() and end.isdecimal()) or max(len(start), len(end)) > 12:
        return None
    # The page scrolls to the first character, which had better be one that can be seen.
    first, last = strip_range(text, int(start), min(int(end), len(text)))
    return (first, last) if first < last else None


def cut_runs(
    text: str,
    *,
    pages: Iterable[Sequence[int]] = (),
    sections: Iterable[Heading] = (),
    marked: tuple[int, int] | None = None,
    within: tuple[int, int] | None = None,
) -> list[TextRun]:
    """The text, or what of it stands ``within`` a range, in reading order. Places outside are left out."""
    first, last = within or (0, len(text))
    page_at = {start: number for number, start, _end in pages if first <= start < last}
    headings: dict[int, tuple[int, int]] = {}
    for section in sections:
        if first <= section.start < last:
            line_end = text.find("\n", section.start)
            headings[section.start] = (line_end if line_end >= 0 else last, section.level)
    cuts = {first, last, *page_at, *headings, *(end for end, _level in headings.values()), *(marked or ())}
    places = sorted(cut for cut in cuts if first <= cut <= last)
    found: list[TextRun] = []
    heading_end = level = 0
    seen_mark = False
    for start, end in pairwise(places):
        begins_heading = start in headings
        if begins_heading:
            heading_end, level = headings[start]
        is_marked = marked is not None and marked[0] <= start < marked[1]
        found.append(
            TextRun(
                text=text[start:end],
                marked=is_marked,
                is_first_marked=is_marked and not seen_mark,
                heading_level=level if start < heading_end else 0,
                anchor=f"section-{start}" if begins_heading else "",
                page=page_at.get(start),
            )
        )
        seen_mark = seen_mark or is_marked
    return found


def unwrap_lines(text: str, sections: Iterable[Heading] = ()) -> str:
    """The text with line ends inside paragraphs turned into spaces, of the same length, so that every offset holds.

    A line end is inside a paragraph when its line is about as long as the document's lines get, and the next line is
    neither empty nor the beginning of a heading or list entry.
    """
    lines = text.split("\n")
    lengths = sorted(len(line) for line in lines if line.strip())
    if not lengths:
        return text
    long = 0.8 * lengths[int(0.9 * (len(lengths) - 1))]
    headings = {section.start for section in sections}
    joined: list[str] = []
    position = 0
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        next_position = position + len(line) + 1
        is_inside = (
            len(line) >= max(long, _SHORTEST_WRAPPED_LINE)
            and bool(following.strip())
            and not _BEGINS_ENTRY.match(following)
            and position not in headings
            and next_position not in headings
        )
        joined += [line, " " if is_inside else "\n"]
        position = next_position
    return "".join(joined[:-1])


def group_runs(found: Iterable[TextRun]) -> list[list[TextRun]]:
    """The pieces in groups that begin at a page or at a line's start, each at least some screens long."""
    groups: list[list[TextRun]] = [[]]
    size = 0
    for piece in found:
        follows_line = not groups[-1] or groups[-1][-1].text.endswith("\n")
        if groups[-1] and (piece.page is not None or (size >= _PART_CHARACTERS and follows_line)):
            groups.append([])
            size = 0
        for shorter in _cut_long_run(piece):
            if groups[-1] and size >= _PART_CHARACTERS and groups[-1][-1].text.endswith("\n"):
                groups.append([])
                size = 0
            groups[-1].append(shorter)
            size += len(shorter.text)
    return [group for group in groups if group]


def _cut_long_run(piece: TextRun) -> list[TextRun]:
    """Plain text cut at line ends; what is marked or a heading stays whole."""
    if piece.marked or piece.heading_level or len(piece.text) <= _PART_CHARACTERS:
        return [piece]
    found: list[TextRun] = []
    start = 0
    while start < len(piece.text):
        line_end = piece.text.find("\n", start + _PART_CHARACTERS)
        end = line_end + 1 if line_end >= 0 else len(piece.text)
        found.append(TextRun(piece.text[start:end], page=piece.page if start == 0 else None))
        start = end
    return found


def line_number(text: str, position: int) -> int:
    """The number of the line, from 1, on which a position stands."""
    return text.count("\n", 0, position) + 1


def find_headings_above(sections: Sequence[Heading], position: int) -> list[Heading]:
    """The headings a position stands under, outermost first."""
    above: list[Heading] = []
    for section in sections:
        if section.start > position:
            break
        above = [outer for outer in above if outer.level < section.level]
        above.append(section)
    return above


def page_number(pages: Iterable[Sequence[int]], position: int) -> int | None:
    return next((number for number, start, end in pages if start <= position < end), None)
