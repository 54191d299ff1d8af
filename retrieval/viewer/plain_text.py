"""Write text and source code as HTML with the passage marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from retrieval.text.extracted import Section
from retrieval.text.sentences import strip_range

# Characters in a part of the HTML. A browser lays out only the parts near the window.
PART_CHARACTERS = 12_000
_LINES_IN_PART = 200
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_SIGNS_OF_HEADING = re.compile(r"#*\s*")
_SHORTEST_WRAPPED_LINE = 40
_BEGINS_ENTRY = re.compile(r"\s*(?:[-*+•–—▪◦]\s|\(?(?:\d{1,3}|[a-z])[.)]\s)|\s{4,}")


@dataclass(frozen=True, slots=True)
class Heading(Section):
    is_current: bool = False

    @property
    def anchor(self) -> str:
        return f"section-{self.start}"


class HtmlWriter:
    """Writes parts of ``text`` as escaped HTML, and puts the range ``passage`` (start, end) into <mark> elements.

    The first <mark> element has the id ``passage``.
    """

    def __init__(self, text: str, passage: tuple[int, int] | None = None) -> None:
        self.text = text
        self.passage = passage or (0, 0)
        self.has_marked = False
        self._parts: list[list[str]] = [[]]
        self._size = 0

    @property
    def html_parts(self) -> list[str]:
        return ["".join(part) for part in self._parts if part]

    def write_html(self, html: str) -> None:
        self._parts[-1].append(html)

    def write_words(self, start: int, end: int) -> None:
        first, last = (min(max(place, start), end) for place in self.passage)
        before, marked, after = (escape(self.text[a:b]) for a, b in ((start, first), (first, last), (last, end)))
        if marked:
            marked = f"<mark>{marked}</mark>" if self.has_marked else f'<mark id="passage">{marked}</mark>'
            self.has_marked = True
        self._parts[-1].append(before + marked + after)
        self._size += end - start

    def is_partly_in_passage(self, start: int, end: int) -> bool:
        return max(start, self.passage[0]) < min(end, self.passage[1])

    def begin_html_part(self, least_characters: int = 0) -> None:
        if self._size >= least_characters:
            self._parts.append([])
            self._size = 0


def write_code(writer: HtmlWriter, line_label: str = "{}") -> None:
    """Write lines of code with their numbers. Line n has the id ``Ln``.

    The HTML is divided into parts of _LINES_IN_PART lines. ``line_label`` is the label for screen readers.
    """
    position = 0
    for number, line in enumerate(_LINE.findall(writer.text) or [""], 1):
        end = position + len(line)
        label = escape(line_label.format(number))
        # The Tab key stops only at lines of the passage.
        skipped = "" if writer.is_partly_in_passage(position, end) else " tabindex=-1"
        writer.write_html(
            f'<span class="line"><a class="line-number" id="L{number}" href="#L{number}" data-line="{number}"'
            f' aria-label="{label}"{skipped}></a>'
        )
        writer.write_words(position, end)
        writer.write_html("</span>")
        position = end
        if number % _LINES_IN_PART == 0:
            writer.begin_html_part()


def write_text_as_html(
    writer: HtmlWriter,
    pages: Iterable[Sequence[int]] = (),
    sections: Iterable[Heading] = (),
    text_range: tuple[int, int] | None = None,
    page_label: str = "{}",
) -> None:
    """Write the text, or only the range ``text_range``, in parts of about PART_CHARACTERS.

    Pages have the id ``page-NUMBER``, headings ``section-OFFSET``.
    """
    first, last = text_range or (0, len(writer.text))
    page_at = {start: number for number, start, _end in pages if first <= start < last}
    headings = {section.start: section for section in sections if first <= section.start < last}
    ends = {_find_line_end(writer.text, start, last) for start in headings}
    for start, end in pairwise(sorted({first, last, *page_at, *headings, *ends})):
        if start in page_at:
            writer.begin_html_part(1)
            label = escape(page_label.format(page_at[start]))
            writer.write_html(f'<div class="page-break" id="page-{page_at[start]}">{label}</div>')
        if start in headings:
            _write_heading(writer, headings[start], end)
            continue
        while start < end:
            piece_end = min(end, _find_line_end(writer.text, start + PART_CHARACTERS, end) + 1)
            writer.write_words(start, piece_end)
            start = piece_end
            if writer.text[start - 1] == "\n":
                writer.begin_html_part(PART_CHARACTERS)


def _find_line_end(text: str, start: int, last: int) -> int:
    at = text.find("\n", start, last)
    return at if at >= 0 else last


def _write_heading(writer: HtmlWriter, heading: Heading, end: int) -> None:
    signs = _SIGNS_OF_HEADING.match(writer.text, heading.start, end)
    words_start = signs.end() if signs else heading.start
    tag = f"h{min(heading.level + 1, 6)}"
    writer.write_html(f'<{tag} class="heading level-{heading.level}" id="{heading.anchor}"><span class="syntax">')
    writer.write_words(heading.start, words_start)
    writer.write_html("</span>")
    writer.write_words(words_start, end)
    writer.write_html(f"</{tag}>")


def parse_passage(text: str, start: str | None, end: str | None) -> tuple[int, int] | None:
    """Return the range from the query parameters ``start`` and ``end``; None if it is invalid or only white space."""
    if not (start and end and start.isdecimal() and end.isdecimal()) or max(len(start), len(end)) > 12:
        return None
    # The page scrolls to the first character.
    first, last = strip_range(text, int(start), min(int(end), len(text)))
    return (first, last) if first < last else None


def unwrap_lines(text: str, sections: Iterable[Heading] = ()) -> str:
    """Replace line ends within paragraphs by spaces. Offsets do not change."""
    lines = text.split("\n")
    lengths = sorted(len(line) for line in lines if line.strip())
    if not lengths:
        return text
    long = max(0.8 * lengths[int(0.9 * (len(lengths) - 1))], _SHORTEST_WRAPPED_LINE)
    headings = {section.start for section in sections}
    joined: list[str] = []
    position = 0
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        next_position = position + len(line) + 1
        is_inside = (
            len(line) >= long
            and bool(following.strip())
            and not _BEGINS_ENTRY.match(following)
            and headings.isdisjoint((position, next_position))
        )
        joined += [line, " " if is_inside else "\n"]
        position = next_position
    return "".join(joined[:-1])


def find_page_number(pages: Iterable[Sequence[int]], position: int) -> int | None:
    return next((number for number, start, end in pages if start <= position < end), None)
