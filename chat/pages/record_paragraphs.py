"""A table's row as extraction wrote it, ``column: value; column: value``, laid out a column a line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

# Fewer may be prose: "Open: yes; parking: no".
FEWEST_COLUMNS = 4
_COLUMN = re.compile(r"(?:^|; )(?P<name>[^\s:;][^:;]{0,60}): ")


def record_paragraphs(markdown: MarkdownIt) -> None:
    """A markdown-it plugin: paragraphs that are records get the class ``record``, and each column a line of its own.

    A value may hold semicolons: what follows one without a column's name still belongs to it.
    """
    markdown.core.ruler.push("record_paragraphs", _lay_out)


def _lay_out(state: StateCore) -> None:
    for opening, inline in pairwise(state.tokens):
        if opening.type != "paragraph_open" or inline.type != "inline" or not _is_record(inline.content):
            continue
        opening.attrSet("class", "record")
        inline.children = [
            piece
            for number, child in enumerate(inline.children or [])
            for piece in (_columns(child, first=number == 0) if child.type == "text" else (child,))
        ]


def _is_record(content: str) -> bool:
    names = [match["name"] for match in _COLUMN.finditer(content)]
    return _COLUMN.match(content) is not None and len(names) >= FEWEST_COLUMNS and "\n" not in content


def show_records(text: str) -> str:
    """The text, its records as cells behind each other: ``column value · column value``."""
    return "\n".join(" · ".join(_cells(line)) if _is_record(line) else line for line in text.split("\n"))


def _cells(line: str) -> Iterator[str]:
    names = list(_COLUMN.finditer(line))
    for match, following in zip(names, [*names[1:], None], strict=True):
        yield f"{match['name']} {line[match.end() : following.start() if following else len(line)]}"


def _columns(text: Token, *, first: bool) -> Iterator[Token]:
    """The text, its columns parted by line breaks and their names emphasised; ``first`` opens the paragraph."""
    position = 0
    for match in _COLUMN.finditer(text.content):
        if match.start() == 0 and not match.group().startswith("; ") and not first:
            continue  # the rest of a value behind a piece of code or a link
        yield from _text(text, text.content[position : match.start()])
        if match.start() > 0 or not first:
            yield Token("hardbreak", "br", 0)
        yield Token("strong_open", "strong", 1)
        yield from _text(text, match["name"])
        yield Token("strong_close", "strong", -1)
        yield from _text(text, " ")
        position = match.end()
    yield from _text(text, text.content[position:])


def _text(like: Token, content: str) -> Iterator[Token]:
    if content:
        yield Token("text", "", 0, content=content, level=like.level)
