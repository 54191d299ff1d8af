"""Plain text and reStructuredText: the text is the source itself; headings are found by how they stand."""

from __future__ import annotations

import itertools
import re

from retrieval.ingest.extraction.decoding import decode
from retrieval.ingest.extraction.lines import derive_title, find_line_starts, plain_title
from retrieval.ingest.extraction.text import restructuredtext
from retrieval.ingest.extraction.text.markdown import find_title
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits, Section
from retrieval.ingest.formats.media_types import PLAIN, RST

_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})[.)]?[ \t]+([^\W\d_].{1,78})")
_LEGAL = re.compile(
    r"(?:Artikel|Article|Hoofdstuk|Chapter|Section|Paragraaf|Bijlage|Appendix)\s+[\dA-Z][\w.]{0,6}(?:[ .:–-].{0,80})?"
)
_SMALL = re.compile("[a-z]")
_CAPITALS = re.compile("[A-Z]{3}")
_RANKS = {"hoofdstuk": 1, "chapter": 1, "bijlage": 1, "appendix": 1}


def extract_plain(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    text, encoding = decode(data, filename)
    sections, literals = restructuredtext.parse_structure(text)
    if media_type == PLAIN and sections and restructuredtext.has_markup(text):
        media_type = RST
    protected = literals if media_type == RST else []
    if media_type == PLAIN and not sections:
        sections = find_headings(text)
    return ExtractedText(
        text=text,
        media_type=media_type,
        title=_find_own_title(text, sections, media_type) or derive_title(filename),
        sections=tuple(sections),
        protected=tuple(protected),
        encoding=encoding,
    )


def _find_own_title(text: str, sections: list[Section], media_type: str) -> str:
    # In text without markup only a heading that opens the text can be trusted to name all of it.
    if media_type == PLAIN and (not sections or text[: sections[0].start].strip() or sections[0].title[0].isdigit()):
        return ""
    return find_title(sections)


def find_headings(text: str) -> list[Section]:
    """Lines that stand as headings in text without markup; empty unless the evidence agrees with itself.

    A heading stands alone between blank lines. Numbered ones must count up from 1 without a gap at the outermost level,
    words such as "Article 4" and capitals must occur at least twice, two blank lines before a single line at least
    three times. One kind is taken, the first that holds.
    """
    starts = find_line_starts(text)
    lines = [text[start:end].strip() for start, end in itertools.pairwise(starts)]
    alone = [
        (starts[at], line)
        for at, line in enumerate(lines)
        if 2 < len(line) <= 100
        and (at == 0 or not lines[at - 1])
        and (at + 1 == len(lines) or not lines[at + 1])
        and line[-1] not in ".,;"
    ]
    return _find_numbered(alone) or _find_legal(alone) or _find_capitals(alone) or _find_spaced(text, alone)


def _find_numbered(alone: list[tuple[int, str]]) -> list[Section]:
    found = [(start, match) for start, line in alone if (match := _NUMBERED.fullmatch(line))]
    outermost = [int(match[1]) for _, match in found if "." not in match[1]]
    if len(outermost) < 2 or outermost != list(range(1, len(outermost) + 1)):
        return []
    return [Section(start, match[1].count(".") + 1, plain_title(match[0])) for start, match in found]


def _find_legal(alone: list[tuple[int, str]]) -> list[Section]:
    found = [(start, line) for start, line in alone if _LEGAL.fullmatch(line)]
    if len(found) < 2:
        return []
    return [Section(start, _RANKS.get(line.split()[0].lower(), 2), plain_title(line)) for start, line in found]


def _find_capitals(alone: list[tuple[int, str]]) -> list[Section]:
    found = [
        (start, line)
        for start, line in alone
        if len(line) <= 60 and _CAPITALS.search(line) and not _SMALL.search(line) and "|" not in line
    ]
    return [Section(start, 1, plain_title(line)) for start, line in found] if len(found) >= 2 else []


def _find_spaced(text: str, alone: list[tuple[int, str]]) -> list[Section]:
    found = [
        (start, line)
        for start, line in alone
        if text.endswith("\n\n\n", 0, start) and line[0].isalnum() and line[-1] != ":"
    ]
    return [Section(start, 1, plain_title(line)) for start, line in found] if len(found) >= 3 else []
