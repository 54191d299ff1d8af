"""Markers in an answer: ``[1]``, ``[2]``. Pure functions over text.

A model writes markers as it likes: split over two pieces of the stream, several in one bracket, naming sources that do
not exist. What leaves this module names a source that was really given, and every marker comes whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from chat.code_spans import PIECE_BREAK, blank, code_in, context, settled, without_code
from retrieval.ingest.sentences import spans

# No source has the number 0: what counts from there is somebody's code.
MARKER = re.compile(r"\[([1-9]\d{0,2})\]")
_NUMBER = r"(?:source\s*)?\^?\d{1,3}"
_NUMBERS_IN_BRACKETS = rf"\[(\s*{_NUMBER}(?:\s*[,;]\s*{_NUMBER})*\s*)\]"
NUMBERS_IN_BRACKETS = re.compile(_NUMBERS_IN_BRACKETS, re.IGNORECASE)
_GROUP = re.compile(rf"[ \t]*{_NUMBERS_IN_BRACKETS}", re.IGNORECASE)
_QUOTED_NUMBERS = re.compile(r"⟦([^⟦⟧\n]*)⟧")
_MARKERS = re.compile(rf"(?:{MARKER.pattern})+")
_WORD = re.compile(r"\w")
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t].*|(\*\*|__)(?:(?!\1).)+\1:?[ \t]*)$", re.MULTILINE)
_TABLE_HEAD = re.compile(r"^[ \t]*\|.*$(?=\n[ \t]*\|[ \t:|-]*-[ \t:|-]*$)", re.MULTILINE)
_TABLE_RULE = re.compile(r"^[ \t]*\|[ \t:|-]*-[ \t:|-]*$", re.MULTILINE)
_LIST_SIGN = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]+\s*")
# The longest text that may still become a marker: "[source 12, source 13, ..." is given up after this many characters.
_LONGEST_GROUP = 60
_OPEN_GROUP = re.compile(rf"[ \t]*(?:\[[\s\w^,;]{{0,{_LONGEST_GROUP}}})?\Z")


def quoted(text: str) -> str:
    """A document's text, in which no number in brackets can be taken for a marker; of the same length."""
    return NUMBERS_IN_BRACKETS.sub(r"⟦\1⟧", text)


def quoted_in_answer(text: str) -> str:
    """A document's text as an answer shows it: as :func:`quoted`, but what names no source anyway is as it was: code,
    and the number 0.
    """

    def rewrite(match: re.Match[str]) -> str:
        return match.group() if 0 in _numbers(match.group()) else quoted(match.group())

    return _outside_code(text, lambda prose: NUMBERS_IN_BRACKETS.sub(rewrite, prose))


def without_markers(text: str) -> str:
    """An answer's text as it is read aloud or judged: without its markers, with all of its code."""
    return _outside_code(text, lambda prose: MARKER.sub("", prose))


class MarkerStream:
    """Passes streamed text on as :func:`keep_known_markers` does with the whole, however it is cut.

    What may become a marker or code is held back: brackets that are open, backticks until their like comes or the
    paragraph ends, and the last line of a block of code.
    """

    def __init__(self, known: Collection[int]) -> None:
        self._known = known
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty."""
        text = self._before + self._held + piece
        cut = settled(text)
        if cut == len(text) and (held := _OPEN_GROUP.search(text)):
            cut = held.start()
        return self._show(text, max(cut, len(self._before)))

    def close(self) -> str:
        """What was held back, at the end of the stream."""
        text = self._before + self._held
        return self._show(text, len(text))

    def _show(self, text: str, upto: int) -> str:
        begin = len(self._before)
        self._before, self._held = context(text[:upto]), text[upto:]
        return _rewritten(text, self._known, begin, upto)


def keep_known_markers(text: str, known: Collection[int]) -> str:
    """``text`` with every marker in the form ``[n]``, and those that name no known source removed with the space
    before.

    Markers in one bracket are taken apart: ``[1, 2]`` becomes ``[1][2]``. Brackets in code, or with a number 0, are no
    markers and stay; in code, numbers that a prompt wrote as ``⟦n⟧`` are written ``[n]`` again.
    """
    return _rewritten(text, known)


def _rewritten(text: str, known: Collection[int], begin: int = 0, end: int | None = None) -> str:
    def rewrite(match: re.Match[str]) -> str:
        group = match.group()
        numbers = _numbers(group)
        if 0 in numbers:
            return group
        kept = "".join(f"[{number}]" for number in dict.fromkeys(numbers) if number in known)
        return group[: len(group) - len(group.lstrip())] + kept if kept else ""

    return _outside_code(
        text,
        lambda prose: _GROUP.sub(rewrite, prose),
        lambda code: _QUOTED_NUMBERS.sub(r"[\1]", code),
        begin,
        end,
    )


def _numbers(group: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", group)]


def _outside_code(
    text: str,
    rewrite_prose: Callable[[str], str],
    rewrite_code: Callable[[str], str] = str,
    begin: int = 0,
    end: int | None = None,
) -> str:
    """``text[begin:end]``, its prose and its code each rewritten."""
    end = len(text) if end is None else end
    rewritten = []
    for code in code_in(text):
        first, last = (min(max(begin, at), end) for at in (code.start, code.end))
        rewritten += [rewrite_prose(text[begin:first]), rewrite_code(text[first:last])]
        begin = last
    return "".join([*rewritten, rewrite_prose(text[begin:end])])


def markers_in(text: str) -> Iterator[re.Match[str]]:
    """The markers of an answer, at their places in it; the number is group 1."""
    return MARKER.finditer(without_code(text))


def cited_statements(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The answer's statements with the markers that stand behind each.

    A marker speaks for the text since the marker before it, back to the start of its paragraph, list item or table row;
    markers in a paragraph of their own speak for the last statement before them (a table or a piece of code). A
    statement without a marker behind it comes with none.
    """
    statements: list[tuple[str, tuple[int, ...]]] = []
    prose = without_code(text)
    for start, end in _pieces(text):
        position = start
        for group in _MARKERS.finditer(prose, start, end):
            statement = text[position : group.start()].strip()
            markers = tuple(_numbers(group.group()))
            if _WORD.search(statement):
                statements.append((statement, markers))
            elif statements:
                statements[-1] = (statements[-1][0], statements[-1][1] + markers)
            position = group.end()
        rest = text[position:end].strip()
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
    blocks = [code for code in code_in(text) if code.fence]
    markers = without_code(text)
    prose = text
    for block in blocks:
        prose = _without(prose, block.start, block.end)
    for left_out in (_HEADING, _TABLE_HEAD, _TABLE_RULE):
        prose = left_out.sub(lambda found: blank(found.group()), prose)
    for group in _MARKERS.finditer(markers):
        prose = _without(prose, *group.span())
    sentences: list[CitedSentence] = []
    own: list[CitedSentence] = []
    for start, end in _pieces(text):
        found = [_without_sign(prose, *span[:2]) for span in spans(prose, start, end) if _WORD.search(prose, *span[:2])]
        if found:
            sentences += own
            own = [CitedSentence(first, last, ()) for first, last in found]
        for group in _MARKERS.finditer(markers, start, end):
            if own and (found or not any(own[-1].end <= block.start < group.start() for block in blocks)):
                own = _cited(own, group.start(), tuple(_numbers(group.group())))
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
    for gap in PIECE_BREAK.finditer(text):
        yield begin, gap.start()
        begin = gap.end()
    yield begin, len(text)


def _without(text: str, start: int, end: int) -> str:
    return text[:start] + blank(text[start:end]) + text[end:]


def _without_sign(text: str, start: int, end: int) -> tuple[int, int]:
    sign = _LIST_SIGN.match(text, start, end)
    return (sign.end() if sign else start), end
