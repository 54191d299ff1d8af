from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

from retrieval.text.word_lists import fill_in


class SentenceBreak(IntEnum):
    """The kind of border before a sentence. The chunker prefers borders with a higher value."""

    NONE = 0
    SENTENCE = 1
    PARAGRAPH = 2


_BOUNDARY = re.compile(
    r"(?P<paragraph>\n[ \t]*\n\s*)"
    r"|(?P<line>\n(?=[ \t]*(?:[-*+•‣–]|\d{1,3}[.)]|[a-z]\)|\.\.|\||>)[ \t]))"
    r"|(?<=[.!?…])[\"'”’»)\]*_`]{0,4}(?P<space>\s+)(?=[\"'“‘«(\[*_`:¿¡]{0,4}[^\W_a-z])"
    r"|(?<=[。！？])(?P<cjk>)(?=[^\s。！？」』）])"
    r"|(?<=[a-z]{2}[.!?])(?P<glued>)(?=[A-Z][a-z]++(?: [a-z]|:))"
)
# A missing space between sentences: "Click Save.Important: back up first". A text needs two matches, because names such
# as models.Model match too.
_GLUED = re.compile(r"(?<![\w.])(?:[a-z]{2,40}+[.!?](?=[A-Z][a-z]++ [a-z])|[A-Za-z]{2,40}+[.!?](?=[A-Z][a-z]++:))")
_ABBREVIATION = re.compile(
    fill_in(r"(?:^|[\s(\[\"'“‘])(?:[A-Z]|[a-z]\.[a-z]|[A-Z]\.[A-Z]|<abbreviations>)$", "documents"), re.I
)


def split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int, SentenceBreak]]:
    """Yield each sentence, list item and paragraph of ``text[start:end]``: start, end, and the break before it.

    Together they contain every character except white space.
    """
    begin, kind = start, SentenceBreak.PARAGRAPH
    glued = {match.end() for match in _GLUED.finditer(text, start, end)}
    for match in _BOUNDARY.finditer(text, start, end):
        cut = match.start() if match["space"] is None else match.start("space")
        if match["space"] is not None and _is_abbreviation(text, begin, cut):
            continue
        if match["glued"] is not None and (len(glued) < 2 or cut not in glued):
            continue
        first, last = strip_range(text, begin, cut)
        if first < last:
            yield first, last, kind
            kind = SentenceBreak.NONE
        kind = max(kind, SentenceBreak.PARAGRAPH if match["paragraph"] is not None else SentenceBreak.SENTENCE)
        begin = match.end()
    first, last = strip_range(text, begin, end)
    if first < last:
        yield first, last, kind


def _is_abbreviation(text: str, begin: int, cut: int) -> bool:
    if text[cut - 1] != ".":
        return False
    if cut - begin <= 6 and text[begin : cut - 1].strip().isdigit():
        return True
    return bool(_ABBREVIATION.search(text[max(begin, cut - 12) : cut - 1]))


def strip_range(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
