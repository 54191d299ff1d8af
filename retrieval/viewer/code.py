"""Source code as numbered lines of HTML, with the passage marked and the kinds of words told apart.

Imports no Django.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from itertools import pairwise

from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

logger = logging.getLogger(__name__)

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LINES_IN_PART = 200
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


def numbered_lines(
    text: str, filename: str, passage: tuple[int, int] | None, line_label: str = "{}", colour: Colour | None = None
) -> list[str]:
    """The HTML of the lines, in parts of 200. Line n has the id ``Ln``, and the first marked words have ``passage``.

    ``line_label`` names a line for those who hear it; ``colour`` stands for :func:`coloured`. A line's end belongs to
    it, so the words of all parts are ``text``.
    """
    runs = (colour or coloured)(text, filename)
    start, end = passage or (0, 0)
    parts: list[str] = []
    lines: list[str] = []
    position = at = 0
    for number, line in enumerate(_LINE.findall(text) or [""], 1):
        line_end = position + len(line)
        html = []
        while at < len(runs) and runs[at][0] < line_end:
            html.append(_piece(text, max(runs[at][0], position), min(runs[at][1], line_end), runs[at][2], (start, end)))
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


def _piece(text: str, start: int, end: int, kind: str, passage: tuple[int, int]) -> str:
    cuts = sorted({start, end, *(cut for cut in passage if start < cut < end)})
    html = []
    for first, last in pairwise(cuts):
        shown = escape(text[first:last], quote=False)
        if passage[0] <= first < passage[1]:
            anchor = ' id="passage"' if first == passage[0] else ""
            shown = f"<mark{anchor}>{shown}</mark>"
        html.append(shown)
    return f'<span class="code-{kind}">{"".join(html)}</span>' if kind else "".join(html)


def coloured(text: str, filename: str) -> Sequence[Run]:
    """The text in runs of one kind, in order; one run without a kind when its language is unknown or it is long."""
    plain = [(0, len(text), "")]
    if len(text) > COLOURED_CHARACTERS:
        return plain
    try:
        lexer = get_lexer_for_filename(filename, text[:2000])
    except ClassNotFound:
        return plain
    runs = list(_joined((at, value, _kind(kind)) for at, kind, value in lexer.get_tokens_unprocessed(text)))
    if [run[0] for run in runs] != [0, *(run[1] for run in runs[:-1])] or (runs and runs[-1][1] != len(text)):
        logger.warning("source code shown without colours", extra={"source": filename, "lexer": lexer.name})
        return plain
    return runs


def _joined(tokens: Iterator[tuple[int, str, str]]) -> Iterator[Run]:
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
def _kind(token: _TokenType) -> str:
    return next((kind for parent, kind in _KINDS if token in parent), "")
