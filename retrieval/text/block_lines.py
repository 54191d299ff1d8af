"""Classify the lines of a text: headings, list items, code fences, tags and so on."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from retrieval.text.extracted import find_line_starts
from retrieval.text.markup import opens_mkdocs_block
from retrieval.text.word_lists import fill_in

_BULLET = re.compile(r"[-*+•‣◦▪●·–](?=\s)|[•‣◦▪●]")
_NUMBER = re.compile(
    fill_in(r"(?:\*\*|__)?(?:<step>\s{1,3}(?P<step>\d{1,3})(?:\s?[.:)–—-]|\*\*|$)", "documents")
    + r"|(?P<number>\d{1,3})[.)](?=[\s*_]|$)|\((?P<bracketed>\d{1,3})\)(?=\s)|(?P<letter>[a-z])[.)](?=\s)"
    r"|\((?P<bracketed_letter>[a-z])\)(?=\s))"
)
_TAGS = re.compile(r"(?:</?[A-Za-z!](?![\w.+-]*+:/)[^<>]{0,500}>\s*+)++")
_LINK_TARGET = re.compile(r"\[(?!\^)[^\[\]]{1,200}\]:\s*+\S")
_IMAGES = re.compile(
    r"(?:\[?!\[[^\[\]]{0,300}\](?:\([^()]{0,1000}\)|\[[^\[\]]{0,100}\])(?:\]\([^()]{0,1000}\))?"
    r"(?:\{[^{}\n]{0,200}\})?\s*+)++"
)
_FENCE = re.compile(r"(`{3,}|~{3,})([^`]*+)$")
_DELIMITER = frozenset("|-: \t")
_FIELD = re.compile(r"([^:;.!?|]{1,80}): ")
_NEXT_FIELD = re.compile(r"; [^:;.!?|]{1,80}: ")
_LONGEST_SNIFF = 2_000


BULLET = -1
"""All items of a bulleted list have this number."""


def read_list_item_number(body: str) -> int | None:
    bullet = _BULLET.match(body)
    if bullet:
        return None if is_horizontal_rule(body) else BULLET
    number = _NUMBER.match(body)
    if not number:
        return None
    digits = number["step"] or number["number"] or number["bracketed"]
    letter = number["letter"] or number["bracketed_letter"]
    return int(digits) if digits else ord(letter) - ord("a") + 1


def is_horizontal_rule(body: str) -> bool:
    marks = body.replace(" ", "")
    return len(marks) >= 3 and marks[0] in "-*_=^#+" and marks == marks[0] * len(marks)


def opens_fence(body: str) -> str:
    match = _FENCE.match(body) if body[0] in "`~" else None
    return match[1] if match and not (match[1][0] == "~" and "~" in match[2]) else ""


def closes_fence(body: str, fence: str) -> bool:
    return body.startswith(fence) and body == fence[0] * len(body)


def is_delimiter(body: str) -> bool:
    return "-" in body and "|" in body and _DELIMITER.issuperset(body)


def is_hidden(body: str) -> bool:
    """Return whether the line has no words to show, such as a rule, tags or images."""
    return (
        is_horizontal_rule(body)
        or (body.startswith(("{%", "{{", "{#")) and body.endswith(("%}", "}}", "#}")))
        or (body[0] == "<" and len(body) <= 2_000 and _TAGS.fullmatch(body) is not None)
        or (body[0] == "[" and _LINK_TARGET.match(body) is not None)
        or (body[0] in "![" and len(body) <= 3_000 and _IMAGES.fullmatch(body) is not None)
    )


def opens_admonition(body: str) -> bool:
    return body.startswith(":::") or opens_mkdocs_block(body)


def read_field(body: str) -> str:
    first = _FIELD.match(body)
    return first[1] if first and _NEXT_FIELD.search(body, first.end(), _LONGEST_SNIFF) else ""


def read_first_field(body: str) -> str:
    first = _FIELD.match(body)
    return first[1] if first else ""


_QUOTE = re.compile(r"(?! {0,3}>>> )(?: {0,3}+> ?+)++")
_WORD = re.compile(r"[^\W_]+")
_FRONT_ENTRY = re.compile(r"[\w\"'-]{1,80}[ \t]*+[:=]|#|\[")
_MOST_HEADING_LINES = 12
# A line with at least this many words more than the heading in it is a sentence.
_RUN_IN_WORDS = 4


class LineRole(IntEnum):
    BLANK = 0
    HEADING = 1
    HIDDEN = 2
    TEXT = 3


@dataclass(slots=True)
class MarkdownLine:
    """A line of a Markdown text, at ``text[start:end]``.

    ``body`` is its text without indentation and ``>`` signs; ``quoted`` is the number of these signs.
    """

    start: int
    end: int
    indent: int
    body: str
    quoted: int
    role: LineRole
    section: int = 0


@dataclass(frozen=True, slots=True)
class SectionTitle:
    words: str = ""
    start: int = 0
    end: int = 0


def read_lines(
    text: str, headings: Sequence[tuple[int, str]], *, is_start: bool = True
) -> tuple[list[MarkdownLine], list[SectionTitle]]:
    """Return the lines of ``text``, and the titles of its sections. ``MarkdownLine.section`` is the index of a title.

    The first title is empty, for text before the first heading. Front matter is recognised only if ``text`` is the
    start of a document (``is_start``).
    """
    lines = [_read_line(text, start, end) for start, end in pairwise(find_line_starts(text + "\n"))]
    if is_start:
        _hide_front_matter(lines)
    return lines, _mark_headings(lines, headings)


def _read_line(text: str, start: int, end: int) -> MarkdownLine:
    raw = text[start:end]
    quote = _QUOTE.match(raw)
    content = raw[quote.end() :] if quote else raw
    body = content.strip()
    if not body:
        return MarkdownLine(start, start, 0, "", 0, LineRole.BLANK)
    lead = content[: len(content) - len(content.lstrip())]
    indent = len(lead.expandtabs(4)) if "\t" in lead else len(lead)
    return MarkdownLine(
        start, start + len(raw.rstrip()), indent, body, quote[0].count(">") if quote else 0, LineRole.TEXT
    )


def _hide_front_matter(lines: list[MarkdownLine]) -> None:
    mark = lines[0].body
    if mark not in ("---", "+++") or lines[0].indent or len(lines) < 2 or not _FRONT_ENTRY.match(lines[1].body):
        return
    close = next((at for at, line in enumerate(lines) if at and line.body == mark and not line.indent), 0)
    for line in lines[: close + 1] if close else ():
        line.role = LineRole.HIDDEN


def _mark_headings(lines: list[MarkdownLine], headings: Sequence[tuple[int, str]]) -> list[SectionTitle]:
    starts = [line.start for line in lines]
    first_lines = [bisect_right(starts, start) - 1 for start, _ in headings] + [len(lines)]
    titles = [SectionTitle()]
    for (_, words), (first, after) in zip(headings, pairwise(first_lines), strict=True):
        title_lines = _mark_heading(lines, first, after, words)
        titles.append(SectionTitle(words, title_lines[0].start, title_lines[-1].end) if title_lines else SectionTitle())
        for line in lines[first:after]:
            line.section = len(titles) - 1
    return titles


def _mark_heading(lines: list[MarkdownLine], first: int, after: int, title: str) -> list[MarkdownLine]:
    after = min(after, first + _MOST_HEADING_LINES)
    at = first
    title_lines = [lines[at]]
    wanted = len(_WORD.findall(title))
    if not lines[at].body.startswith("#"):
        held = len(_WORD.findall(lines[at].body[:1000]))
        is_adorned = at + 1 < after and is_adornment(lines[at + 1].body)
        if held >= wanted + _RUN_IN_WORDS and not is_adorned and "[" not in lines[at].body:
            return []
        while held < wanted and at + 1 < after and lines[at + 1].body and not is_adornment(lines[at + 1].body):
            at += 1
            held += len(_WORD.findall(lines[at].body[:1000]))
            title_lines.append(lines[at])
        if at + 1 < after and is_adornment(lines[at + 1].body):
            lines[at + 1].role = LineRole.HEADING
    for line in title_lines:
        line.role = LineRole.HEADING
    return title_lines


def is_adornment(body: str) -> bool:
    """Return whether the line is one punctuation mark repeated, such as an underline."""
    return len(body) > 1 and not body[0].isalnum() and body == body[0] * len(body) and body[0] not in ".|"
