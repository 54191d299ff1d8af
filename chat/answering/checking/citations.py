"""The site's markers in an answer, ``[1]``, ``[2]``, and the sentences that they support. PURE.

The forms in which models write citations are in `citation_forms`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, itemgetter

from retrieval.text.sentences import split_sentences

# Where the code is in an answer's Markdown: between fences, and between backticks.
#
# Brackets in code are no markers.

# Where a paragraph, a list item or a table row ends.
PIECE_BREAK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:\||(?:[-*+•]|\d{1,3}[.)])[ \t]))")
# What may stand in front of a fence: the signs of lists and of quotations.
_INDENT = r"[ \t]*(?:(?:>|(?:[-*+•]|\d{1,3}[.)])[ \t])[ \t]*)*"
_INLINE_END = rf"{PIECE_BREAK.pattern}|\n(?={_INDENT}(?:`{{3}}|~{{3}}))"
# Backticks whose like is further away than this are text: nobody waits for it any longer.
_LONGEST_INLINE = 300
_CODE = re.compile(
    rf"^{_INDENT}(?P<fence>`{{3,}}(?=[^`\n]*$)|~{{3,}})[^\n]*"
    r"(?:\n.*?^[ \t>]*(?P=fence)[`~]*[ \t]*$|(?P<open>.*)\Z)"
    rf"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!{_INLINE_END}).){{1,{_LONGEST_INLINE}}}?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_ENDS_OF_INLINE = re.compile(_INLINE_END)
# A line that may become a fence, and a bracket that may become a marker.
_UNDECIDED = re.compile(rf"^{_INDENT}(?:`{{3}}|~{{3}})[^\n]*+\Z|[\[⟦][\s\w^,;]{{0,60}}+\Z", re.MULTILINE)
_NOT_A_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Code:
    """``text[start:end]`` is code, its fences or backticks included.

    ``fence`` opens a block; it is empty for code within a line. A block that ``is_open`` has no end yet.
    """

    start: int
    end: int
    fence: str = ""
    is_open: bool = False


def find_code(text: str) -> list[Code]:
    """The code of a text, in order. A backtick that is not closed in the same paragraph, list item or row is text."""
    return [
        Code(
            match.start("fence" if match["fence"] else "ticks"),
            match.end(),
            match["fence"] or "",
            match["open"] is not None,
        )
        for match in _CODE.finditer(text)
    ]


def blank_code(text: str) -> str:
    """The text with spaces in place of its code; of the same length, in the same lines."""
    return without(text, [(code.start, code.end) for code in find_code(text)])


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with spaces in place of the spans, which are in order; of the same length, in the same lines."""
    pieces = []
    position = 0
    for start, end in spans:
        pieces += [text[position:start], blank(text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def blank(text: str) -> str:
    """As many spaces, in the same lines."""
    return _NOT_A_NEWLINE.sub(" ", text)


def find_undecided(text: str) -> int:
    """The offset in a text still being written from which it may yet become code or a marker; its length if nothing
    may.
    """
    last_end = max((match.start() for match in _ENDS_OF_INLINE.finditer(text)), default=0)
    ticks = blank_code(text).find("`", max(last_end, len(text) - 2 * _LONGEST_INLINE))
    undecided = _UNDECIDED.search(text)
    return min(ticks if ticks >= 0 else len(text), undecided.start() if undecided else len(text))


# No source has the number 0: what counts from there is somebody's code.
MARKER = re.compile(r"\[([1-9]\d{0,2})\]")
_NUMBER = r"(?:source\s*)?\^?\d{1,3}"
_NUMBERS_IN_BRACKETS = rf"\[(\s*+{_NUMBER}(?:\s*+[,;]\s*+{_NUMBER})*\s*+)\]"
NUMBERS_IN_BRACKETS = re.compile(_NUMBERS_IN_BRACKETS, re.IGNORECASE)
# Numbers in brackets of a document, as the prompt quotes them.
QUOTED_NUMBERS = re.compile(r"⟦([^⟦⟧\n]*)⟧")
_WORD = re.compile(r"\w")
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t].*|(\*\*|__)(?:(?!\1).)+\1:?[ \t]*)$", re.MULTILINE)
_RULE = r"[ \t]*+\|(?=[ \t:|]*+-)[ \t:|-]*+$"
_TABLE_HEAD = re.compile(rf"^[ \t]*+\|.*$(?=\n{_RULE})", re.MULTILINE)
_TABLE_RULE = re.compile(rf"^{_RULE}", re.MULTILINE)
_LEADING_STOP = re.compile(r"^[.,;:!?]+\s+")
_LIST_SIGN = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]+\s*")


def quoted(text: str) -> str:
    """A document's text, of the same length, in which no number in brackets can be mistaken for a marker."""
    return NUMBERS_IN_BRACKETS.sub(r"⟦\1⟧", text)


def quote_for_answer(text: str) -> str:
    """A document's text as an answer shows it. Brackets are replaced as by :func:`quoted`, except in code and around
    the number 0, which never name a source.
    """

    def rewrite(match: re.Match[str]) -> str:
        return match.group() if 0 in _numbers(match.group()) else quoted(match.group())

    return _outside_code(text, lambda prose: NUMBERS_IN_BRACKETS.sub(rewrite, prose))


def remove_markers(text: str, markers: Iterable[Marker] | None = None) -> str:
    """Return an answer's text as it is read aloud or judged: without its markers, with all of its code.

    ``markers`` are those of a text that a model wrote; without them every ``[n]`` is one.
    """
    pieces = []
    at = 0
    for marker in find_markers(text) if markers is None else markers:
        pieces.append(text[at : marker.start])
        at = marker.end
    return "".join([*pieces, text[at:]])


def _numbers(group: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", group)]


def _outside_code(text: str, rewrite: Callable[[str], str]) -> str:
    """Return the text with its prose rewritten and its code as it is."""
    rewritten = []
    begin = 0
    for code in find_code(text):
        rewritten += [rewrite(text[begin : code.start]), text[code.start : code.end]]
        begin = code.end
    return "".join([*rewritten, rewrite(text[begin:])])


@dataclass(frozen=True, slots=True)
class Marker:
    """``text[start:end]`` of an answer is ``[number]``."""

    number: int
    start: int
    end: int

    def moved(self, characters: int) -> Marker:
        """Return the marker at an offset larger by so many characters."""
        return Marker(self.number, self.start + characters, self.end + characters)


def find_markers(text: str) -> list[Marker]:
    """The markers of an answer, in order."""
    return [Marker(int(match[1]), *match.span()) for match in MARKER.finditer(blank_code(text))]


def cited_words(text: str, markers: Sequence[Marker]) -> Iterator[tuple[Marker, str]]:
    """Yield each marker of an answer with the words it supports: the sentence, or the part of one, that ends there.

    A marker behind another marker, or in a paragraph of its own, supports the text before it, even a table or a piece
    of code. A marker before any words supports none.
    """
    words = ""
    for start, end in _pieces(text):
        for marker in markers:
            if start <= marker.start < end:
                words = _last_sentence(text[start : marker.start]) or words
                yield marker, words
                start = marker.end
        words = _last_sentence(text[start:end]) or words


def _last_sentence(text: str) -> str:
    """The last sentence of the text between two markers; a piece of code as a whole; empty without words."""
    # In "It is hot [1]. It is wet [2]." the first full stop is no part of what the second marker speaks for.
    text = _LEADING_STOP.sub("", text.strip())
    if not _WORD.search(text):
        return ""
    *_, (start, end, _break) = split_sentences(text, 0, len(text))
    return text if "```" in text else text[start:end]


@dataclass(slots=True)
class CitedSentence:
    """A sentence, list item or table row of an answer, ``text[start:end]``, and the numbers of its sources.

    It ends before the markers behind it, but includes markers before its full stop. The sign of a list item does not
    belong to it.
    """

    start: int
    end: int
    markers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Numbers of sources beside each other in an answer, ``text[start:end]``."""

    start: int
    end: int
    numbers: tuple[int, ...]


def group_markers(markers: Iterable[Marker]) -> list[Group]:
    """Return the groups of markers that follow each other without a blank."""
    groups: list[Group] = []
    for marker in markers:
        if groups and groups[-1].end == marker.start:
            groups[-1] = Group(groups[-1].start, marker.end, (*groups[-1].numbers, marker.number))
        else:
            groups.append(Group(marker.start, marker.end, (marker.number,)))
    return groups


def cited_sentences(text: str, groups: Sequence[Group]) -> list[CitedSentence]:
    """Return the answer's sentences, list items and table rows, in order. ``groups`` are its citations, in order.

    Markers in or behind a sentence belong to it. Markers in a paragraph of their own belong to the paragraph before.

    Headings, heads of tables, and fenced code with the markers behind it are left out: the words of code do not show
    whether it does what it should.
    """
    blocks = [(code.start, code.end) for code in find_code(text) if code.fence]
    prose = without(text, blocks)
    for left_out in (_HEADING, _TABLE_HEAD, _TABLE_RULE):
        prose = left_out.sub(lambda match: blank(match.group()), prose)
    prose = without(prose, [(group.start, group.end) for group in groups])
    paragraphs: list[list[CitedSentence]] = []
    for piece_start, piece_end in _pieces(text):
        sentences = [
            CitedSentence(sign.end() if (sign := _LIST_SIGN.match(prose, start, end)) else start, end)
            for start, end, _break in split_sentences(prose, piece_start, piece_end)
            if _WORD.search(prose, start, end)
        ]
        if sentences:
            paragraphs.append(sentences)
        for group in groups:
            if not piece_start <= group.start < piece_end or not paragraphs:
                continue
            if sentences or not _begins_between(blocks, paragraphs[-1][-1].end, group.start):
                cited = paragraphs[-1][max(0, bisect_right(paragraphs[-1], group.start, key=attrgetter("start")) - 1)]
                cited.markers = tuple(dict.fromkeys((*cited.markers, *group.numbers)))
    return list(chain.from_iterable(paragraphs))


def _begins_between(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of the spans, which are in order, begins in [start, end)."""
    at = bisect_left(spans, start, key=itemgetter(0))
    return at < len(spans) and spans[at][0] < end


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the paragraphs, list items and table rows of an answer."""
    begin = 0
    for gap in PIECE_BREAK.finditer(text):
        yield begin, gap.start()
        begin = gap.end()
    yield begin, len(text)
