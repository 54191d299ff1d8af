"""What of the context can be quoted: sentences, list items, table rows and pieces of code, each at its exact place.
Pure.

The text is what extraction made of the file: Markdown, reStructuredText, plain text, or a table's rows as lines of
``column: value; column: value``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from retrieval.text.sentences import split_sentences

if TYPE_CHECKING:
    from chat.types import Source

LONGEST_PART = 700

_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_TABLE_ROW = re.compile(r"^[ \t]*\|")
_TABLE_RULE = re.compile(r"^[ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*\|?[ \t]*+$")
_RECORD = re.compile(r"^[^\s:;][^:;]{0,60}: [^;]*; [^\s:;][^:;]{0,60}: ")
_RECORD_SUBJECT = re.compile(r"[^\s:;|][^:;]{0,60}: ([^;]+); ")
_MARKDOWN_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++(.*)$")
_UNDERLINE = re.compile(r"^([=\-~^\"'*+#`.:_])\1{2,}[ \t]*$")
_WORD = re.compile(r"[^\W_]+")
_MARKUP = re.compile(r"[*`]")


class PartKind(StrEnum):
    SENTENCE = "sentence"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Part:
    """``text`` is the document's ``text[start:end]``.

    ``heading`` is what it stands under, without markup; of a record, the value of its first column.
    ``opens`` says that it is the first thing said under that heading. ``paragraph`` numbers the paragraphs, lists and
    tables of a source. ``lead`` is the head of the table a row belongs to.
    """

    source: Source
    start: int
    end: int
    text: str
    kind: PartKind
    heading: str
    opens: bool
    paragraph: int
    lead: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Region:
    kind: PartKind
    start: int
    end: int
    heading: str


def parts_of(sources: Sequence[Source]) -> list[Part]:
    """All that could be quoted, in the order of the sources and then of the text; headings are left out."""
    return [part for source in sources for part in _parts_of_block(source)]


def _parts_of_block(source: Source) -> Iterator[Part]:
    content, offset = source.block.content, source.block.start
    known = {_plain(heading).casefold() for passage in source.block.passages for heading in passage.heading_path}
    known.add(_plain(source.block.best.document_title).casefold())
    first_path = source.block.passages[0].heading_path
    opened: set[str] = set()
    for paragraph, region in enumerate(_regions(content, known, first_path[-1] if first_path else "")):
        for start, end, kind, lead in _cut(content, region):
            text = content[start:end]
            if len(_WORD.findall(text)) < 2:
                continue
            subject = _RECORD_SUBJECT.match(text) if kind is PartKind.ROW else None
            heading = _plain(subject[1]) if subject else region.heading
            opens = bool(heading) and heading not in opened
            opened.add(heading)
            yield Part(source, offset + start, offset + end, text, kind, heading, opens, paragraph, lead)


def _regions(content: str, known_headings: set[str], heading: str) -> list[_Region]:
    """Prose, code and tables between the headings, in order."""
    regions: list[_Region] = []
    in_fence = False
    after_gap = False

    def extend(kind: PartKind, line: _Line) -> None:
        last = regions[-1] if regions else None
        if last and not after_gap and last.kind is kind and last.heading == heading and last.end >= line.start - 1:
            regions[-1] = _Region(kind, last.start, line.end, heading)
        else:
            regions.append(_Region(kind, line.start, line.end, heading))

    lines = [_Line(match.start(), match.end(), match.group()) for match in re.finditer(r"[^\n]+", content)]
    for number, line in enumerate(lines):
        gap = number > 0 and content.count("\n", lines[number - 1].end, line.start) > 1
        after_gap = gap and not in_fence
        if _FENCE.match(line.text):
            extend(PartKind.CODE, line)
            in_fence = not in_fence
        elif in_fence:
            extend(PartKind.CODE, line)
        elif _UNDERLINE.match(line.text):
            continue
        elif markdown := _MARKDOWN_HEADING.match(line.text):
            heading = _plain(markdown[1].rstrip(" \t#"))
        elif _plain(line.text).casefold() in known_headings:
            heading = _plain(line.text)
        elif _TABLE_ROW.match(line.text) or _RECORD.match(line.text):
            extend(PartKind.ROW, line)
        else:
            extend(PartKind.SENTENCE, line)
    return regions


def _cut(content: str, region: _Region) -> Iterator[tuple[int, int, PartKind, str]]:
    if region.kind is PartKind.CODE:
        yield region.start, min(region.end, region.start + LONGEST_PART), region.kind, ""
    elif region.kind is PartKind.ROW:
        yield from _rows(content, region)
    else:
        for start, end, _break in split_sentences(content, region.start, region.end):
            yield start, min(end, start + LONGEST_PART), region.kind, ""


def _rows(content: str, region: _Region) -> Iterator[tuple[int, int, PartKind, str]]:
    lines = [
        (region.start + match.start(), region.start + match.end())
        for match in re.finditer(r"[^\n]+", content[region.start : region.end])
    ]
    lead = ""
    if len(lines) > 2 and _TABLE_RULE.match(content[slice(*lines[1])]):
        lead = content[lines[0][0] : lines[1][1]]
        lines = lines[2:]
    for start, end in lines:
        yield start, min(end, start + LONGEST_PART), region.kind, lead


def _plain(heading: str) -> str:
    return " ".join(_MARKUP.sub("", heading).split())
