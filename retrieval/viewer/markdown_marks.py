"""Markdown rendered with ranges of its source marked. PURE.

The source is parsed as it is, and the marks are put between the tokens: what a reader sees is the same with and without
them, an element is never crossed, and no sign in a document can be taken for one.

    markdown.use(mark_ranges)
    render(markdown, text, [Mark(120, 180, id="passage")])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_core import inline as parse_inlines
from markdown_it.rules_inline import StateInline, fragments_join
from markdown_it.token import Token
from markdown_it.utils import EnvType

from retrieval.text.sentences import strip_range

_BLANKS = " \t\n\r\f\v"
# How many signs of a run each token stood for before it became, with its neighbour, an element.
_FROM_SIGNS = {"text": 1, "em_open": 1, "em_close": 1, "strong_open": 1, "strong_close": 1, "s_open": 2, "s_close": 2}


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """``text[offset : offset + length]`` comes from ``source[start:end]``, character by character when both are as
    long; else the whole from the whole, as ``&`` comes from ``&amp;``."""

    offset: int
    length: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """``text[start:end]`` lies in the range with this number."""

    start: int
    end: int
    number: int


def find_overlaps(places: Sequence[SourcePlace], ranges: Sequence[MarkedSpan]) -> list[MarkedSpan]:
    """Which parts of the text the ``ranges`` of its source cover, by range and then by start."""
    found = []
    for span in ranges:
        for place in places:
            if span.start >= place.end or place.start >= span.end:
                continue
            first, last = 0, place.length
            if place.length == place.end - place.start:
                first, last = max(span.start - place.start, 0), min(span.end, place.end) - place.start
            found.append(MarkedSpan(place.offset + first, place.offset + last, span.number))
    return found


def join_over_blanks(text: str, spans: Sequence[MarkedSpan]) -> list[MarkedSpan]:
    """The spans, those of one range joined where only blanks stand between them."""
    joined: list[MarkedSpan] = []
    for span in spans:
        last = joined[-1] if joined else None
        if last and last.number == span.number and not text[last.end : span.start].strip(_BLANKS):
            joined[-1] = MarkedSpan(last.start, max(last.end, span.end), span.number)
        else:
            joined.append(span)
    return joined


# Blocks --------------------------------------------------------------------------------------------------------------


def locate_lines(content: str, lines: Sequence[tuple[int, str]]) -> list[SourcePlace]:
    """The places of a block's ``content`` in the source ``lines`` it was taken from, each with where it starts.

    What stands before a line (quotation signs, indentation) and around it (the signs of a heading) is no part of it.
    """
    places = []
    offset = 0
    for line, (start, source) in zip(content.split("\n"), lines, strict=False):
        words = line.strip(_BLANKS)
        if words:
            at = source.rfind(words)
            begins = offset + len(line) - len(line.lstrip(_BLANKS))
            if at >= 0:
                places.append(SourcePlace(begins, len(words), start + at, start + at + len(words)))
            else:
                places.append(SourcePlace(begins, len(words), start, start + len(source)))
        offset += len(line) + 1
    return places


def locate_cell(content: str, start: int, source: str, column: int) -> tuple[list[SourcePlace], int]:
    """The places of a table cell's ``content`` in its row, from ``column`` on, and the column behind it."""
    written = content.replace("|", "\\|")
    at = source.find(written, column)
    if not content or at < 0:
        return [], column
    places = []
    offset, position = 0, start + at
    for number, part in enumerate(content.split("|")):
        if number:
            places.append(SourcePlace(offset, 1, position, position + 2))
            offset, position = offset + 1, position + 2
        places.append(SourcePlace(offset, len(part), position, position + len(part)))
        offset, position = offset + len(part), position + len(part)
    return places, at + len(written)


# Inlines -------------------------------------------------------------------------------------------------------------


class LocatingState(StateInline):
    """A parse of inline Markdown that remembers where each token was written."""

    def __init__(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> None:
        super().__init__(src, md, env, tokens)
        self._positions: list[int] = []
        self._parts: list[tuple[int, int]] = []
        # Of a token, by identity: its parts as (which position, how many characters).
        self._origins: dict[int, list[tuple[int, int]]] = {}

    def append_pending(self, text: str) -> None:
        self._parts.append((self._here(), len(text)))
        super().append_pending(text)

    def pushPending(self) -> Token:  # noqa: N802
        token = super().pushPending()
        self._origins[id(token)], self._parts = self._parts, []
        return token

    def push(self, ttype: str, tag: str, nesting: int) -> Token:
        token = super().push(ttype, tag, nesting)  # type: ignore[arg-type]
        # A line end takes the blanks before it away; when nothing is left of the text, nothing was pushed.
        self._parts = []
        self._origins[id(token)] = [(self._here(), -1)]
        return token

    def _here(self) -> int:
        self._positions.append(self.pos)
        return len(self._positions) - 1

    def locate_tokens(self) -> Iterator[tuple[Token, list[SourcePlace]]]:
        """Each token of the finished parse with its places, in order."""
        ends = self._ends()
        behind = 0
        for token in self.tokens:
            places: list[SourcePlace] = []
            offset = 0
            for which, count in self._origins.get(id(token), ()):
                start, end = self._positions[which], ends[which]
                length = min(count, len(token.content) - offset) if count >= 0 else len(token.content)
                text = token.content[offset : offset + length]
                # The signs of a run such as *** come one by one from one position.
                source = self.src[max(start, behind) : end].replace("\n", " ")
                at = source.find(text) if text and token.type != "text_special" else -1
                if at >= 0:
                    start = max(start, behind) + at
                    behind = end = start + length
                elif count < 0 and not text and token.type in _FROM_SIGNS:
                    behind = max(start, behind) + _FROM_SIGNS[token.type]
                places.append(SourcePlace(offset, length, start, end))
                offset += length
            yield token, places

    def _ends(self) -> list[int]:
        """For each position, the next one that lies behind it."""
        ends = []
        end = len(self.src)
        for here, following in zip(reversed(self._positions), [None, *reversed(self._positions)], strict=False):
            if following is not None and following > here:
                end = following
            ends.append(end)
        return ends[::-1]


_MARKS = "marks"
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_CODE = ("fence", "code_block", "code_inline")
_CELLS = frozenset({"th_open", "td_open"})


@dataclass(frozen=True, slots=True)
class Mark:
    """``source[start:end]`` is to be shown inside elements ``tag`` with these attributes, as many as its blocks ask
    for. Only the first of them carries the ``id``. Raises: ValueError for names that are none of HTML's."""

    start: int
    end: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    tag: str = "mark"

    def __post_init__(self) -> None:
        for name in (self.tag, *self.attributes):
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of an element or attribute.")


def render(markdown: MarkdownIt, text: str, marks: Sequence[Mark], env: MutableMapping[str, Any] | None = None) -> str:
    """The HTML of ``text`` as ``markdown`` renders it, with ``marks`` in it.

    A mark that reaches beyond the text is cut; one on signs alone, which nobody sees, leaves none. Marks may overlap:
    those given first are the outer ones. Code is not marked where ``markdown`` has a highlighter of its own.
    Raises: ValueError when ``markdown`` does not use :func:`mark_ranges`.
    """
    env = {} if env is None else env
    return str(markdown.renderer.render(parse(markdown, text, marks, env), markdown.options, env))


def parse(markdown: MarkdownIt, text: str, marks: Sequence[Mark], env: MutableMapping[str, Any]) -> list[Token]:
    """The tokens that :func:`render` renders."""
    env[_MARKS] = _Marks([_fit_mark(mark, text) for mark in marks])
    tokens = markdown.parse(text, env)
    if env.pop(_MARKS, None) is not None:
        raise ValueError("This MarkdownIt does not use mark_ranges.")
    return tokens


def mark_ranges(markdown: MarkdownIt) -> None:
    """A markdown-it plugin: lets :func:`render` mark what ``markdown`` renders. Without marks it changes nothing."""
    markdown.core.ruler.at("inline", _parse_inlines)
    renderer = markdown.renderer
    assert isinstance(renderer, RendererHTML)
    for name in _CODE:
        renderer.rules[name] = _wrap_code_rule(renderer.rules[name])  # type: ignore[assignment]


# Marks ---------------------------------------------------------------------------------------------------------------


class _Marks:
    """The marks of one rendering; hands out the id of each once."""

    def __init__(self, marks: Sequence[Mark]) -> None:
        self._marks = marks
        self._opened: set[int] = set()
        self.spans = [
            MarkedSpan(mark.start, mark.end, number) for number, mark in enumerate(marks) if mark.start < mark.end
        ]

    def opening(self, number: int) -> Token:
        mark = self._marks[number]
        token = Token("range_open", mark.tag, 1)
        if mark.id and number not in self._opened:
            token.attrSet("id", mark.id)
        for name, value in mark.attributes.items():
            token.attrSet(name, value)
        self._opened.add(number)
        return token

    def closing(self, number: int) -> Token:
        return Token("range_close", self._marks[number].tag, -1)


def _fit_mark(mark: Mark, text: str) -> Mark:
    """The mark without blanks at its ends, at the offsets that hold after the parser has made all line ends one
    character."""
    start, end = strip_range(text, max(mark.start, 0), min(mark.end, len(text)))
    start, end = (at - text.count("\r\n", 0, at) for at in (start, end))
    return Mark(start, max(start, end), mark.attributes, mark.id, mark.tag)


def _cut_at_marks(length: int, spans: Sequence[MarkedSpan]) -> list[tuple[int, int, tuple[int, ...]]]:
    """The text in pieces, each with the numbers of the marks that cover it."""
    cuts = sorted({0, length, *(cut for span in spans for cut in (span.start, span.end) if 0 <= cut <= length)})
    return [
        (start, end, tuple(sorted({span.number for span in spans if span.start <= start and end <= span.end})))
        for start, end in pairwise(cuts)
    ]


# Parsing -------------------------------------------------------------------------------------------------------------


def _parse_inlines(state: StateCore) -> None:
    """In the place of markdown-it's rule ``inline``, which does the work for all that no mark touches."""
    marks: _Marks | None = state.env.pop(_MARKS, None)
    if marks is None or not marks.spans:
        parse_inlines(state)
        return
    lines = SourceLines(state.src)
    for at, token in enumerate(state.tokens):
        touching = lines.touching(token, marks.spans) if token.type in ("inline", "fence", "code_block") else []
        if token.type != "inline":
            if touching and token.map:
                first = token.map[0] + (token.type == "fence")
                places = locate_lines(token.content, lines.between(first, token.map[1]))
                spans = join_over_blanks(token.content, find_overlaps(places, touching))
                token.meta[_MARKS] = _render_code(token.content, spans, marks)
            continue
        spans = []
        if touching:
            places = lines.places(token, state.tokens[at - 1])
            spans = join_over_blanks(token.content, find_overlaps(places, touching))
        token.children = [] if token.children is None else token.children
        if spans:
            _parse_marked(token.content, state, token.children, spans, marks)
        else:
            state.md.inline.parse(token.content, state.md, state.env, token.children)


class SourceLines:
    """The lines of a parsed text, and where the content of its blocks stands in them."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = [0]
        self._row, self._column = -1, 0
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def between(self, first: int, last: int) -> list[tuple[int, str]]:
        """The lines, each with where it starts."""
        return list(zip(self._starts[first:last], self._lines[first:last], strict=False))

    def places(self, inline: Token, opening: Token) -> list[SourcePlace]:
        """The places of an inline token's content, asked for in order; ``opening`` is the token before it."""
        if inline.map is None:
            return []
        if opening.type not in _CELLS:
            return locate_lines(inline.content, self.between(*inline.map))
        row = inline.map[0]
        self._row, column = row, self._column if row == self._row else 0
        places, self._column = locate_cell(inline.content, *self.between(row, row + 1)[0], column)
        return places

    def touching(self, token: Token, spans: Sequence[MarkedSpan]) -> list[MarkedSpan]:
        """The spans that touch the lines of a block."""
        if token.map is None:
            return []
        start, end = (self._starts[min(line, len(self._starts) - 1)] for line in token.map)
        return [span for span in spans if span.start < end and start < span.end]


def _parse_marked(
    content: str, state: StateCore, tokens: list[Token], spans: Sequence[MarkedSpan], marks: _Marks
) -> None:
    """As ``ParserInline.parse``, with the marks put in before neighbouring texts become one."""
    inline = LocatingState(content, state.md, state.env, tokens)
    state.md.inline.tokenize(inline)
    rules = state.md.inline.ruler2.getRules("")
    for rule in rules:
        if rule is fragments_join:
            _insert_marks(inline, spans, marks)
        rule(inline)
    if fragments_join not in rules:
        _insert_marks(inline, spans, marks)


def _insert_marks(inline: LocatingState, spans: Sequence[MarkedSpan], marks: _Marks) -> None:
    found: list[Token] = []
    opened: tuple[int, ...] = ()

    def switch(numbers: tuple[int, ...]) -> None:
        nonlocal opened
        if numbers != opened:
            found.extend(marks.closing(number) for number in reversed(opened))
            found.extend(marks.opening(number) for number in numbers)
            opened = numbers

    for token, places in list(inline.locate_tokens()):
        if token.nesting or token.type == "html_inline":
            switch(())
            found.append(token)
        elif token.type in ("text", "code_inline"):
            runs = _cut_at_marks(len(token.content), find_overlaps(places, spans))
            if token.type == "text" and len(runs) > 1:
                for start, end, numbers in runs:
                    switch(numbers)
                    found.append(token.copy(content=token.content[start:end]))
                continue
            if len(runs) > 1:
                switch(())
                token.meta[_MARKS] = _render_code(token.content, find_overlaps(places, spans), marks)
            elif runs:
                switch(runs[0][2])
            found.append(token)
        else:
            switch(tuple(sorted({s.number for s in spans for p in places if s.start < p.end and p.start < s.end})))
            found.append(token)
    switch(())
    inline.tokens[:] = found


# Code ----------------------------------------------------------------------------------------------------------------


def _render_code(content: str, spans: Sequence[MarkedSpan], marks: _Marks) -> str:
    """The HTML of code with its marks: its renderers know text alone."""
    html = []
    for start, end, numbers in _cut_at_marks(len(content), spans):
        opening, closing = (
            "".join(RendererHTML.renderToken(_TAGS, [token], 0, {}, {}) for token in tokens)  # type: ignore[arg-type]
            for tokens in ([marks.opening(n) for n in numbers], [marks.closing(n) for n in reversed(numbers)])
        )
        html.append(f"{opening}{escapeHtml(content[start:end])}{closing}")
    return "".join(html)


_TAGS = RendererHTML()


def _wrap_code_rule(plain: Callable[..., str]) -> Callable[..., str]:
    """A rule of a renderer that shows what ``plain`` shows, with the code's marks in it."""

    def render_code(tokens: Sequence[Token], idx: int, *rest: Any) -> str:
        html = plain(tokens, idx, *rest)
        marked = tokens[idx].meta.get(_MARKS)
        if marked is None:
            return html
        return html.replace(f">{escapeHtml(tokens[idx].content)}</code>", f">{marked}</code>", 1)

    return render_code
