"""Where the visible text of Markdown stands in its source. PURE.

The parser keeps lines for blocks and nothing for what is inside them; here it is watched while it works, so what it
finds stays what it would have found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

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
