"""Render Markdown as HTML in which ranges of the source text are marked.

Marks are inserted between the parser's tokens, so a mark changes nothing else, and cannot be imitated by a document.

    markdown.use(enable_range_marks)
    render(markdown, text, [MarkedRange(120, 180, id="passage")])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_core import inline as parse_inlines
from markdown_it.token import Token

from retrieval.text.extracted import find_line_starts
from retrieval.text.sentences import strip_range

_BLANKS = " \t\n\r\f\v"
_MARKS = "marks"
_CODE = ("fence", "code_block", "code_inline")
_CELLS = frozenset({"th_open", "td_open"})
_SIGNS = frozenset({"*", "**", "_", "__", "~~"})
_WRITTEN = {"softbreak": "\n", "hardbreak": "\n", "image": "!["}
_LINK_END = re.compile(r"\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\]\[[^\[\]]*\]|\]")

Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MarkedRange:
    """A range ``source[start:end]`` of a Markdown text to show in ``mark`` elements with ``attributes``.

    Each block in the range has its own element. The first element has the ``id``.
    """

    start: int
    end: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    id: str = ""


def render_with_marks(
    markdown: MarkdownIt, text: str, marks: Sequence[MarkedRange], env: MutableMapping[str, Any] | None = None
) -> str:
    """Return ``text`` as HTML with ``marks``. If marks overlap, earlier ones enclose later ones.

    Raises: ValueError if the parser ``markdown`` lacks the plugin :func:`enable_range_marks`.
    """
    env = {} if env is None else env
    return str(markdown.renderer.render(parse(markdown, text, marks, env), markdown.options, env))


def parse(markdown: MarkdownIt, text: str, marks: Sequence[MarkedRange], env: MutableMapping[str, Any]) -> list[Token]:
    env[_MARKS] = _Marks([_normalise_mark(mark, text) for mark in marks])
    tokens = markdown.parse(text, env)
    if env.pop(_MARKS, None) is not None:
        raise ValueError("This MarkdownIt does not use enable_range_marks.")
    return tokens


def enable_range_marks(markdown: MarkdownIt) -> None:
    markdown.core.ruler.at("inline", _parse_inlines)
    renderer = markdown.renderer
    assert isinstance(renderer, RendererHTML)
    for name in _CODE:
        renderer.rules[name] = _build_marked_code_rule(renderer.rules[name])  # type: ignore[assignment]


class _Marks:
    def __init__(self, marks: Sequence[MarkedRange]) -> None:
        self._marks = marks
        self._opened: set[int] = set()

    def find_covering(self, start: int, end: int) -> Numbers:
        return tuple(n for n, mark in enumerate(self._marks) if mark.start < end and start < mark.end)

    def build_opening_token(self, number: int) -> Token:
        mark = self._marks[number]
        token = Token("range_open", "mark", 1)
        if mark.id and number not in self._opened:
            token.attrSet("id", mark.id)
        for name, value in mark.attributes.items():
            token.attrSet(name, value)
        self._opened.add(number)
        return token


def _normalise_mark(mark: MarkedRange, text: str) -> MarkedRange:
    start, end = strip_range(text, max(mark.start, 0), min(mark.end, len(text)))
    start, end = (at - text.count("\r\n", 0, at) for at in (start, end))
    return replace(mark, start=start, end=max(start, end))


class SourceLines:
    """Finds the offsets of parsed tokens in a Markdown text. Call ``find_origins`` for a row's cells in their order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = find_line_starts(text)
        self._row, self._column = -1, 0

    def bounds(self, token: Token) -> tuple[int, int]:
        first, last = token.map or (0, 0)
        return self._starts[min(first, len(self._starts) - 1)], self._starts[min(last, len(self._starts) - 1)]

    def find_origins(self, block: Token, opening: Token | None = None) -> list[int]:
        """Return the offset in the source of each character of a block, and of the block's end; [] if unknown.

        ``opening`` is the token before the block.
        """
        if block.map is None:
            return []
        start, end = self.bounds(block)
        if opening is not None and opening.type in _CELLS:
            return self._origins_of_cell(block.content, block.map[0], self._text[start:end])
        found: list[int] = []
        lines = self._text[start:end].split("\n")[block.type == "fence" :]
        start += len(self._text[start:end].partition("\n")[0]) + 1 if block.type == "fence" else 0
        for number, line in enumerate(block.content.split("\n")):
            source = lines[number] if number < len(lines) else ""
            words = line.strip(_BLANKS)
            first = start + max(0, source.rfind(words)) - (len(line) - len(line.lstrip(_BLANKS)))
            found += range(first, first + len(line) + 1)
            start += len(source) + 1 if number < len(lines) else 0
        return found

    def _origins_of_cell(self, content: str, row: int, source: str) -> list[int]:
        self._row, column = row, self._column if row == self._row else 0
        at = source.find(content.replace("|", "\\|"), column)
        if at < 0:
            self._column = column
            return []
        found = []
        at += self._starts[row]
        for character in content:
            found.append(at)
            at += 1 + (character == "|")
        self._column = at - self._starts[row]
        return [*found, at]


def _find_children(content: str, children: Sequence[Token]) -> Iterator[tuple[Token, int, int]]:
    at = 0
    flat = content.replace("\n", " ")
    for token in children:
        if token.type == "link_close" and not token.markup:
            end = _LINK_END.match(content, at)
            at = end.end() if end else at
        elif token.markup in _SIGNS or token.type == "code_inline":
            # Markup such as * or a backtick comes before the text of its element, and is skipped.
            at = max(at, flat.find(token.markup, at) + len(token.markup))
        words = _WRITTEN.get(token.type) or (token.markup if token.type == "text_special" else token.content)
        start = -1 if token.nesting or not words else (content if words == "\n" else flat).find(words, at)
        if start < 0:
            yield token, at, at
            continue
        at = start + len(words)
        yield token, start, at
        if token.type == "code_inline":
            at += len(token.markup)


def _parse_inlines(state: StateCore) -> None:
    marks: _Marks | None = state.env.pop(_MARKS, None)
    parse_inlines(state)
    if marks is None:
        return
    lines = SourceLines(state.src)
    for at, token in enumerate(state.tokens):
        if token.type not in ("inline", "fence", "code_block") or not marks.find_covering(*lines.bounds(token)):
            continue
        origins = lines.find_origins(token, state.tokens[at - 1] if at else None)
        if not origins:
            continue
        if token.type == "inline":
            token.children = list(_mark_ranges_in_children(token, origins, marks))
        else:
            _mark_code(token, origins, marks)


def _mark_ranges_in_children(inline: Token, origins: Sequence[int], marks: _Marks) -> Iterator[Token]:
    opened: Numbers = ()

    def close_and_open_ranges(numbers: Numbers) -> Iterator[Token]:
        nonlocal opened
        if numbers != opened:
            yield from (Token("range_close", "mark", -1) for _number in opened)
            yield from (marks.build_opening_token(number) for number in numbers)
            opened = numbers

    for token, start, end in _find_children(inline.content, inline.children or []):
        runs = [] if token.nesting else list(_split_by_covering_ranges(origins[start : end + 1], marks))
        if token.type == "text" and len(runs) > 1:
            done = 0
            for length, numbers in runs:
                yield from close_and_open_ranges(numbers)
                yield token.copy(content=token.content[done : done + length])
                done += length
            continue
        if token.type == "code_inline" and len(runs) > 1:
            yield from close_and_open_ranges(())
            _mark_code(token, origins[start : end + 1], marks)
        elif runs or token.nesting or token.type == "text":
            yield from close_and_open_ranges(tuple(sorted({n for _, numbers in runs for n in numbers})))
        yield token
    yield from close_and_open_ranges(())


def _split_by_covering_ranges(origins: Sequence[int], marks: _Marks) -> Iterator[tuple[int, Numbers]]:
    covered = (marks.find_covering(start, max(start + 1, end)) for start, end in pairwise(origins))
    for numbers, run in groupby(covered):
        yield sum(1 for _ in run), numbers


def _mark_code(token: Token, origins: Sequence[int], marks: _Marks) -> None:
    html, done = [], 0
    for length, numbers in _split_by_covering_ranges(origins[: len(token.content.rstrip("\n")) + 1], marks):
        opening = "".join(RendererHTML.renderToken(_TAGS, [marks.build_opening_token(n)], 0, {}, {}) for n in numbers)  # type: ignore[arg-type]
        html.append(f"{opening}{escapeHtml(token.content[done : done + length])}{'</mark>' * len(numbers)}")
        done += length
    token.meta[_MARKS] = "".join([*html, escapeHtml(token.content[done:])])


_TAGS = RendererHTML()


def _build_marked_code_rule(plain: Callable[..., str]) -> Callable[..., str]:
    def render_code(tokens: Sequence[Token], idx: int, *rest: Any) -> str:
        html = plain(tokens, idx, *rest)
        marked = tokens[idx].meta.get(_MARKS)
        if marked is None:
            return html
        return html.replace(f">{escapeHtml(tokens[idx].content)}</code>", f">{marked}</code>", 1)

    return render_code
