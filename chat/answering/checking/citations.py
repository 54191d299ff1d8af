"""Find the site's markers in an answer (``[1]``) and the sentences that they support."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, itemgetter

from retrieval.text.sentences import split_sentences

PIECE_BREAK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:\||(?:[-*+•]|\d{1,3}[.)])[ \t]))")
_INDENT = r"[ \t]*(?:(?:>|(?:[-*+•]|\d{1,3}[.)])[ \t])[ \t]*)*"
_INLINE_END = rf"{PIECE_BREAK.pattern}|\n(?={_INDENT}(?:`{{3}}|~{{3}}))"
# Text between two backticks further apart than this many characters is not code.
_LONGEST_INLINE = 300
_CODE = re.compile(
    rf"^{_INDENT}(?P<fence>`{{3,}}(?=[^`\n]*$)|~{{3,}})[^\n]*"
    r"(?:\n.*?^[ \t>]*(?P=fence)[`~]*[ \t]*$|(?P<open>.*)\Z)"
    rf"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!{_INLINE_END}).){{1,{_LONGEST_INLINE}}}?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_ENDS_OF_INLINE = re.compile(_INLINE_END)
_UNDECIDED = re.compile(rf"^{_INDENT}(?:`{{3}}|~{{3}})[^\n]*+\Z|[\[⟦][\s\w^,;]{{0,60}}+\Z", re.MULTILINE)
_NOT_A_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class CodeSpan:
    """A piece of code at ``text[start:end]``, including its fences or backticks.

    ``fence`` is empty for code within a line. ``is_open`` is true if the closing fence is missing.
    """

    start: int
    end: int
    fence: str = ""
    is_open: bool = False


def find_code_spans(text: str) -> list[CodeSpan]:
    """Return all code in a Markdown text, in blocks and within lines."""
    if "`" not in text and "~~~" not in text:
        return []
    return [
        CodeSpan(
            match.start("fence" if match["fence"] else "ticks"),
            match.end(),
            match["fence"] or "",
            match["open"] is not None,
        )
        for match in _CODE.finditer(text)
    ]


def blank_out_code(text: str) -> str:
    return blank_out_spans(text, [(code.start, code.end) for code in find_code_spans(text)])


def blank_out_spans(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with spaces in place of the ordered ``spans``. Line ends stay."""
    pieces = []
    position = 0
    for start, end in spans:
        pieces += [text[position:start], blank_out_text(text[start:end])]
        position = end
    return "".join([*pieces, text[position:]])


def blank_out_text(text: str) -> str:
    return _NOT_A_NEWLINE.sub(" ", text)


def find_unfinished_markup(text: str) -> int:
    """Return the offset of unfinished code, or of an unfinished citation such as ``[1``, at the end of a text.

    The offset is the length of the text if the text ends with neither.
    """
    last_end = max((match.start() for match in _ENDS_OF_INLINE.finditer(text)), default=0)
    ticks = blank_out_code(text).find("`", max(last_end, len(text) - 2 * _LONGEST_INLINE))
    undecided = _UNDECIDED.search(text)
    return min(ticks if ticks >= 0 else len(text), undecided.start() if undecided else len(text))


MARKER = re.compile(r"\[([1-9]\d{0,2})\]")
_NUMBER = r"(?:source\s*)?\^?\d{1,3}"
_NUMBERS_IN_BRACKETS = rf"\[(\s*+{_NUMBER}(?:\s*+[,;]\s*+{_NUMBER})*\s*+)\]"
NUMBERS_IN_BRACKETS = re.compile(_NUMBERS_IN_BRACKETS, re.IGNORECASE)
QUOTED_NUMBERS = re.compile(r"⟦([^⟦⟧\n]*)⟧")
_WORD = re.compile(r"\w")
_HEADING = re.compile(r"^[ \t]*(?:#{1,6}[ \t].*|(\*\*|__)(?:(?!\1).)+\1:?[ \t]*)$", re.MULTILINE)
_RULE = r"[ \t]*+\|(?=[ \t:|]*+-)[ \t:|-]*+$"
_TABLE_HEAD = re.compile(rf"^[ \t]*+\|.*$(?=\n{_RULE})", re.MULTILINE)
_TABLE_RULE = re.compile(rf"^{_RULE}", re.MULTILINE)
_LEADING_STOP = re.compile(r"^[.,;:!?]+\s+")
_LIST_SIGN = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]+\s*")


def escape_markers(text: str) -> str:
    """Return a document's text with ⟦1⟧ in place of [1], so that it contains no markers. Its length stays."""
    return NUMBERS_IN_BRACKETS.sub(r"⟦\1⟧", text)


def escape_bracketed_numbers(text: str) -> str:
    def rewrite(match: re.Match[str]) -> str:
        return match.group() if 0 in _read_numbers(match.group()) else escape_markers(match.group())

    return _rewrite_outside_code(text, lambda prose: NUMBERS_IN_BRACKETS.sub(rewrite, prose))


def remove_markers(text: str, markers: Iterable[CitationMarker] | None = None) -> str:
    """Return an answer's text without its markers (``[1]``).

    If ``markers`` is None, every ``[n]`` counts as a marker.
    """
    pieces = []
    at = 0
    for marker in find_markers(text) if markers is None else markers:
        pieces.append(text[at : marker.start])
        at = marker.end
    return "".join([*pieces, text[at:]])


def _read_numbers(group: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", group)]


def _rewrite_outside_code(text: str, rewrite: Callable[[str], str]) -> str:
    rewritten = []
    begin = 0
    for code in find_code_spans(text):
        rewritten += [rewrite(text[begin : code.start]), text[code.start : code.end]]
        begin = code.end
    return "".join([*rewritten, rewrite(text[begin:])])


@dataclass(frozen=True, slots=True)
class CitationMarker:
    number: int
    start: int
    end: int

    def shift_by(self, characters: int) -> CitationMarker:
        return CitationMarker(self.number, self.start + characters, self.end + characters)


def find_markers(text: str) -> list[CitationMarker]:
    return [CitationMarker(int(match[1]), *match.span()) for match in MARKER.finditer(blank_out_code(text))]


def iterate_cited_words(text: str, markers: Sequence[CitationMarker]) -> Iterator[tuple[CitationMarker, str]]:
    """Yield each marker of an answer with the sentence, or the part of a sentence, before it.

    Markers without text between them have the same words.
    """
    words = ""
    for start, end in _find_piece_spans(text):
        for marker in markers:
            if start <= marker.start < end:
                words = _find_last_sentence(text[start : marker.start]) or words
                yield marker, words
                start = marker.end
        words = _find_last_sentence(text[start:end]) or words


def _find_last_sentence(text: str) -> str:
    # In "[1]. It is wet [2].", the first full stop ends the previous sentence.
    text = _LEADING_STOP.sub("", text.strip())
    if not _WORD.search(text):
        return ""
    *_, (start, end, _break) = split_sentences(text, 0, len(text))
    return text if "```" in text else text[start:end]


@dataclass(slots=True)
class CitedSentence:
    """A sentence, list item or table row at ``text[start:end]``, with the numbers of its sources.

    The range includes markers before the full stop, but not the bullet or number of a list item.
    """

    start: int
    end: int
    markers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkerGroup:
    start: int
    end: int
    numbers: tuple[int, ...]


def group_markers(markers: Iterable[CitationMarker]) -> list[MarkerGroup]:
    groups: list[MarkerGroup] = []
    for marker in markers:
        if groups and groups[-1].end == marker.start:
            groups[-1] = MarkerGroup(groups[-1].start, marker.end, (*groups[-1].numbers, marker.number))
        else:
            groups.append(MarkerGroup(marker.start, marker.end, (marker.number,)))
    return groups


def find_cited_sentences(
    text: str, groups: Sequence[MarkerGroup], *, is_continued: bool = False
) -> list[CitedSentence]:
    """Return an answer's sentences, list items and table rows in order, each with the source numbers it cites.

    ``groups`` are the markers in the text. Headings, table heads and fenced code are left out. ``is_continued``: more
    text follows, so a line at the end can be a heading too.
    """
    blocks = [(code.start, code.end) for code in find_code_spans(text) if code.fence]
    prose = blank_out_spans(text, blocks)
    last = len(text) if is_continued else len(prose.rstrip())
    prose = _HEADING.sub(
        lambda match: blank_out_text(match.group()) if _is_heading(match, last) else match.group(), prose
    )
    for left_out in (_TABLE_HEAD, _TABLE_RULE):
        prose = left_out.sub(lambda match: blank_out_text(match.group()), prose)
    prose = blank_out_spans(prose, [(group.start, group.end) for group in groups])
    paragraphs: list[list[CitedSentence]] = []
    for piece_start, piece_end in _find_piece_spans(text):
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
            if sentences or not _has_span_start_between(blocks, paragraphs[-1][-1].end, group.start):
                cited = paragraphs[-1][max(0, bisect_right(paragraphs[-1], group.start, key=attrgetter("start")) - 1)]
                cited.markers = tuple(dict.fromkeys((*cited.markers, *group.numbers)))
    return list(chain.from_iterable(paragraphs))


def _is_heading(line: re.Match[str], last: int) -> bool:
    """Return whether the line is a heading, and not a bold sentence or the end of the text at ``last``."""
    is_sentence = bool(line[1]) and NUMBERS_IN_BRACKETS.sub("", line.group()).rstrip(" \t*_").endswith((".", "。"))
    return not is_sentence and line.end() < last


def _has_span_start_between(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    at = bisect_left(spans, start, key=itemgetter(0))
    return at < len(spans) and spans[at][0] < end


def _find_piece_spans(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for gap in PIECE_BREAK.finditer(text):
        yield begin, gap.start()
        begin = gap.end()
    yield begin, len(text)
