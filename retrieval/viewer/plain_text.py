"""Plain text and source code as pages to read, with the passage marked. PURE."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any, BinaryIO

from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from retrieval.documents import sandbox
from retrieval.infrastructure.metrics import CODE_NOT_COLOURED
from retrieval.text.sentences import strip_range

logger = logging.getLogger(__name__)

# Source code as numbered lines of HTML, with the passage marked and the kinds of words told apart.

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LINES_IN_PART = 200
# A page waits for it.
LIMITS = sandbox.JobLimits(memory_mib=256, seconds=1.5, output_bytes=20_000_000)
# A lexer takes about a second for each million characters, and much longer for some odd ones.
COLOURED_CHARACTERS = 200_000
_KINDS = (
    (Comment, "c"), (Keyword, "k"), (String, "s"), (Number, "n"), (Name.Function, "f"), (Name.Class, "f"),
    (Name.Tag, "k"), (Name.Attribute, "f"), (Name.Decorator, "f"), (Name.Builtin, "k"),
)  # fmt: skip

KINDS = frozenset(kind for _token, kind in _KINDS)

Run = tuple[int, int, str]
"""A stretch of one kind: start, end, class."""
Colour = Callable[[str, str], Sequence[Run]]


def render_code_lines(
    text: str, filename: str, passage: tuple[int, int] | None, line_label: str = "{}", colour: Colour | None = None
) -> list[str]:
    """The HTML of the lines, in parts of 200. Line n has the id ``Ln``, and the first marked words have ``passage``.

    ``line_label`` names a line to screen readers; ``colour`` replaces :func:`colour_source`. A line's end belongs to
    it, so the words of all parts are ``text``.
    """
    runs = (colour or colour_source)(text, filename)
    start, end = passage or (0, 0)
    parts: list[str] = []
    lines: list[str] = []
    position = at = 0
    for number, line in enumerate(_LINE.findall(text) or [""], 1):
        line_end = position + len(line)
        html = []
        while at < len(runs) and runs[at][0] < line_end:
            first, last, kind = runs[at]
            html.append(_render_run(text, max(first, position), min(last, line_end), kind, (start, end)))
            if runs[at][1] > line_end:
                break
            at += 1
        is_marked = start < line_end and position < end
        anchor = (
            f'<a class="line-number" id="L{number}" href="#L{number}" data-line="{number}"'
            f' aria-label="{escape(line_label.format(number))}"{"" if is_marked else " tabindex=-1"}></a>'
        )
        lines.append(f'<span class="line{" is-marked" if is_marked else ""}">{anchor}{"".join(html)}</span>')
        position = line_end
        if len(lines) == _LINES_IN_PART:
            parts.append("".join(lines))
            lines = []
    return [*parts, "".join(lines)] if lines else parts


def _render_run(text: str, start: int, end: int, kind: str, passage: tuple[int, int]) -> str:
    cuts = sorted({start, end, *(cut for cut in passage if start < cut < end)})
    html = []
    for first, last in pairwise(cuts):
        shown = escape(text[first:last], quote=False)
        if passage[0] <= first < passage[1]:
            anchor = ' id="passage"' if first == passage[0] else ""
            shown = f"<mark{anchor}>{shown}</mark>"
        html.append(shown)
    return f'<span class="code-{kind}">{"".join(html)}</span>' if kind else "".join(html)


def colour_source(text: str, filename: str) -> Sequence[Run]:
    """The text in runs of one kind, in order; one run without a kind when its language is unknown or it is long."""
    plain = [(0, len(text), "")]
    if len(text) > COLOURED_CHARACTERS:
        return plain
    try:
        lexer = get_lexer_for_filename(filename, text[:2000])
    except ClassNotFound:
        return plain
    runs = list(_join_tokens((at, value, _class_of(kind)) for at, kind, value in lexer.get_tokens_unprocessed(text)))
    if [run[0] for run in runs] != [0, *(run[1] for run in runs[:-1])] or (runs and runs[-1][1] != len(text)):
        logger.warning("source code shown without colours", extra={"source": filename, "lexer": lexer.name})
        return plain
    return runs


def _join_tokens(tokens: Iterator[tuple[int, str, str]]) -> Iterator[Run]:
    current: Run | None = None
    for at, value, kind in tokens:
        if current and current[2] == kind and current[1] == at:
            current = (current[0], at + len(value), kind)
        else:
            if current:
                yield current
            current = (at, at + len(value), kind)
    if current:
        yield current


@cache
def _class_of(token: _TokenType) -> str:
    return next((kind for parent, kind in _KINDS if token in parent), "")


# In the sandbox: some lexers take very long over text that was made for it -------------------------------------------


def colour_in_sandbox(text: str, filename: str) -> Sequence[Run]:
    """As :func:`colour_source`, in a process of its own; one run without a kind if that fails."""
    plain = [(0, len(text), "")]
    if len(text) > COLOURED_CHARACTERS:
        return plain
    try:
        value, _ = sandbox.run(
            f"{__name__}:colour", text.encode("utf-8"), {"filename": filename}, LIMITS, preload=("pygments.lexers",)
        )
        return _check_runs(value, len(text))
    except (sandbox.SandboxError, ValueError, TypeError) as error:
        CODE_NOT_COLOURED.inc()
        logger.warning("source code shown without colours", extra={"source": filename, "reason": str(error)})
        return plain


def colour(file: BinaryIO, filename: str) -> tuple[list[Run], bytes]:
    """The job. What comes back is JSON: tuples become lists."""
    return list(colour_source(file.read().decode("utf-8"), filename)), b""


def _check_runs(value: Any, length: int) -> list[Run]:
    """Raises: ValueError or TypeError unless the runs follow each other from the beginning to the end of the text."""
    runs: list[Run] = []
    position = 0
    for start, end, kind in value:
        if start != position or not start <= end <= length or (kind and kind not in KINDS):
            raise ValueError("The colours came back damaged.")
        runs.append((start, end, kind))
        position = end
    if position != length:
        raise ValueError("The colours do not cover the text.")
    return runs


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
