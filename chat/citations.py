"""Markers in an answer: ``[1]``, ``[2]``. Pure functions over text.

A model writes markers as it likes: split over two pieces of the stream, several in one bracket, naming sources that do
not exist. What leaves this module names a source that was really given, and every marker comes whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from retrieval.ingest.sentences import spans

MARKER = re.compile(r"\[(\d{1,3})\]")
_MARKERS = re.compile(r"(?:\[\d{1,3}\])+")
_PIECE_BREAK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:\||(?:[-*+•]|\d{1,3}[.)])[ \t]))")
_WORD = re.compile(r"\w")
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t].*|(\*\*|__)(?:(?!\1).)+\1:?[ \t]*)$", re.MULTILINE)
_TABLE_HEAD = re.compile(r"^[ \t]*\|.*$(?=\n[ \t]*\|[ \t:|-]*-[ \t:|-]*$)", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]*\|[ \t:|-]*-[ \t:|-]*$", re.MULTILINE)
_LIST_SIGN = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_BLANK = re.compile(r"[^\n]")
_GROUP = re.compile(r"[ \t]*\[\s*(?:source\s*)?\^?\d{1,3}(?:\s*[,;]\s*(?:source\s*)?\^?\d{1,3})*\s*\]", re.IGNORECASE)
# The longest text that may still become a marker: "[source 12, source 13, ..." is given up after this many characters.
_LONGEST_GROUP = 60
_OPEN_GROUP = re.compile(rf"[ \t]*(?:\[[\s\w^,;]{{0,{_LONGEST_GROUP}}})?$")


class MarkerStream:
    """Passes streamed text on, markers whole and only those in ``known``; holds back what may become one."""

    def __init__(self, known: Collection[int]) -> None:
        self._known = known
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty."""
        text = self._held + piece
        held = _OPEN_GROUP.search(text)
        cut = held.start() if held else len(text)
        self._held = text[cut:]
        return keep_known_markers(text[:cut], self._known)

    def close(self) -> str:
        """What was held back, at the end of the stream."""
        rest, self._held = self._held, ""
        return keep_known_markers(rest, self._known)


def keep_known_markers(text: str, known: Collection[int]) -> str:
    """``text`` with every marker in the form ``[n]``, and those that name no known source removed with the space
    before.

    Markers in one bracket are taken apart: ``[1, 2]`` becomes ``[1][2]``.
    """

    def rewrite(match: re.Match[str]) -> str:
        group = match.group()
        numbers = [int(number) for number in re.findall(r"\d+", group)]
        kept = "".join(f"[{number}]" for number in dict.fromkeys(numbers) if number in known)
        return group[: len(group) - len(group.lstrip())] + kept if kept else ""

    return _GROUP.sub(rewrite, text)


def cited_statements(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The answer's statements with the markers that stand behind each.

    A marker speaks for the text since the marker before it, back to the start of its paragraph, list item or table row;
    markers in a paragraph of their own speak for the last statement before them (a table or a piece of code). A
    statement without a marker behind it comes with none.
    """
    statements: list[tuple[str, tuple[int, ...]]] = []
    for piece in _PIECE_BREAK.split(text):
        position = 0
        for group in _MARKERS.finditer(piece):
            statement = piece[position : group.start()].strip()
            markers = tuple(int(number) for number in MARKER.findall(group.group()))
            if _WORD.search(statement):
                statements.append((statement, markers))
            elif statements:
                statements[-1] = (statements[-1][0], statements[-1][1] + markers)
            position = group.end()
        rest = piece[position:].strip()
        if _WORD.search(rest):
            statements.append((rest, ()))
    return statements


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence, list item or table row of an answer, ``text[start:end]``, and the markers that speak for it.

    It ends before the markers behind it, those before its full stop aside; the sign of a list item is no part of it.
    """

    start: int
    end: int
    markers: tuple[int, ...]


def cited_sentences(text: str) -> list[CitedSentence]:
    """The answer's sentences in order, list items and table rows among them.

    Markers in or behind a sentence speak for it and for those before it that have none, back to the start of the
    paragraph, item or row. Markers in a paragraph of their own speak as if they stood at the end of the one before.

    Left out are headings, the heads of tables, and code between fences, with the markers behind it: whether code does
    what it should cannot be told from its words.
    """
    code = [found.span() for found in _CODE.finditer(text)]
    prose = text
    for left_out in (_CODE, _HEADING, _TABLE_HEAD, _TABLE_RULE, _MARKERS):
        prose = left_out.sub(lambda found: _BLANK.sub(" ", found.group()), prose)
    sentences: list[CitedSentence] = []
    own: list[CitedSentence] = []
    for start, end in _pieces(text):
        found = [_without_sign(prose, *span[:2]) for span in spans(prose, start, end) if _WORD.search(prose, *span[:2])]
        if found:
            sentences += own
            own = [CitedSentence(first, last, ()) for first, last in found]
        for group in _MARKERS.finditer(text, start, end):
            if own and (found or not any(own[-1].end <= at < group.start() for at, _ in code)):
                numbers = tuple(int(number) for number in MARKER.findall(group.group()))
                own = _cited(own, group.start(), numbers)
    return sentences + own


def _cited(sentences: Sequence[CitedSentence], at: int, markers: tuple[int, ...]) -> list[CitedSentence]:
    """The sentences of a paragraph after markers that stand at an offset of the text."""
    owner = max((number for number, sentence in enumerate(sentences) if sentence.start <= at), default=0)
    first = owner
    while first > 0 and not sentences[first - 1].markers:
        first -= 1
    return [
        replace(sentence, markers=tuple(dict.fromkeys((*sentence.markers, *markers))))
        if first <= number <= owner
        else sentence
        for number, sentence in enumerate(sentences)
    ]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Where the paragraphs, list items and table rows of an answer stand."""
    begin = 0
    for gap in _PIECE_BREAK.finditer(text):
        yield begin, gap.start()
        begin = gap.end()
    yield begin, len(text)


def _without_sign(text: str, start: int, end: int) -> tuple[int, int]:
    sign = _LIST_SIGN.match(text, start, end)
    return (sign.end() if sign else start), end
