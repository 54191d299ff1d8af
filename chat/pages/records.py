"""Show each record as labels and values, one pair for each column.

A record is a table row that the extraction has written as one line: ``column: value; column: value``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from retrieval.tables.names import format_column_label

# A line with fewer columns than this may be prose, such as "Open: yes; parking: no".
FEWEST_COLUMNS = 4
_ASKED = re.compile(r"[^\s:;][^:;\n]{0,60}: [^\n]+$")
_COLUMN = re.compile(r"(?:^|; )(?P<name>[^\s:;][^:;]{0,60}): ")


def add_record_layout(markdown: MarkdownIt) -> None:
    """Make a Markdown parser show records, lines of the form ``column: value; column: value``, as columns."""
    markdown.core.ruler.push("record_paragraphs", _lay_out_records)


def _lay_out_records(state: StateCore) -> None:
    tokens: list[Token] = []
    asked: list[Token] = []
    for opening, inline in pairwise([*state.tokens, Token("", "", 0)]):
        tokens.append(opening)
        if opening.type != "paragraph_open" or inline.type != "inline":
            continue
        if _is_record_paragraph(inline.content):
            opening.attrSet("class", "record")
            _break_lines(inline)
            if asked and len(asked) == len([token for token in tokens if token.type == "paragraph_open"]) - 1:
                for each in asked:
                    each.attrSet("class", "asked")
                tokens[-1:] = [*_build_details_opening_tokens(), opening]
        elif _ASKED.match(inline.content):
            asked.append(opening)
    state.tokens[:] = tokens
    if any(token.tag == "details" for token in tokens):
        state.tokens.append(Token("details_close", "details", -1, block=True))


def _build_details_opening_tokens() -> Iterator[Token]:
    yield Token("details_open", "details", 1, attrs={"class": "fields"}, block=True)
    yield Token("summary_open", "summary", 1, block=True)
    yield Token("inline", "", 0, children=[Token("text", "", 0, content=_("All fields"))], content="", block=True)
    yield Token("summary_close", "summary", -1, block=True)


def _break_lines(inline: Token) -> None:
    inline.children, children = [], inline.children or []
    for number, child in enumerate(children):
        is_first = not any(before.content for before in children[:number])
        inline.children += _build_column_tokens(child, is_first=is_first) if child.type == "text" else (child,)


def _is_record_paragraph(content: str) -> bool:
    names = [match["name"] for match in _COLUMN.finditer(content)]
    return _COLUMN.match(content) is not None and len(names) >= FEWEST_COLUMNS and "\n" not in content


def format_records(text: str) -> str:
    """Return the text with each record (``column: value; …``) written as ``column value · column value``."""
    return "\n".join(
        " · ".join(_format_cells(line)) if _is_record_paragraph(line) else line for line in text.split("\n")
    )


def _format_cells(line: str) -> Iterator[str]:
    names = list(_COLUMN.finditer(line))
    for match, following in zip(names, [*names[1:], None], strict=True):
        value = line[match.end() : following.start() if following else len(line)]
        yield f"{format_column_label(match['name'])} {value}"


def _build_column_tokens(text: Token, *, is_first: bool) -> Iterator[Token]:
    position = 0
    for match in _COLUMN.finditer(text.content):
        if match.start() == 0 and not match.group().startswith("; ") and not is_first:
            continue
        yield from _make_text_tokens(text, text.content[position : match.start()])
        if match.start() > 0 or not is_first:
            yield Token("hardbreak", "br", 0)
        yield Token("strong_open", "strong", 1)
        yield from _make_text_tokens(text, format_column_label(match["name"]))
        yield Token("strong_close", "strong", -1)
        yield from _make_text_tokens(text, " ")
        position = match.end()
    yield from _make_text_tokens(text, text.content[position:])


def _make_text_tokens(like: Token, content: str) -> Iterator[Token]:
    if content:
        yield Token("text", "", 0, content=content, level=like.level)
