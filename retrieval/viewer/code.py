"""Source code as numbered lines of HTML, with the passage marked and the kinds of words told apart. PURE."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any, BinaryIO

from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
from pygments.token import Comment, Keyword, Name, Number, String, _TokenType  # type: ignore[import-untyped]
from pygments.util import ClassNotFound  # type: ignore[import-untyped]

from retrieval.documents import sandbox
from retrieval.infrastructure.metrics import CODE_NOT_COLOURED

logger = logging.getLogger(__name__)

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


def render_lines(
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
