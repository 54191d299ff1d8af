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

LONGEST_BLOCK = 700

_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_TABLE_ROW = re.compile(r"^[ \t]*\|")
_TABLE_RULE = re.compile(r"^[ \t]*+(?:\|[ \t]*+)?:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*\|?[ \t]*+$")
_RECORD = re.compile(r"^[^\s:;][^:;]{0,60}: [^;]*; [^\s:;][^:;]{0,60}: ")
_RECORD_SUBJECT = re.compile(r"[^\s:;|][^:;]{0,60}: ([^;]+); ")
_MARKDOWN_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++(.*)$")
_UNDERLINE = re.compile(r"^([=\-~^\"'*+#`.:_])\1{2,}[ \t]*$")
_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"[^\W_]+")
_MARKUP = re.compile(r"[*`]")


class BlockKind(StrEnum):
    SENTENCE = "sentence"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class QuotableBlock:
    """``text`` is the document's ``text[start:end]``.

    ``heading`` is what it stands under, without markup; of a record, the value of its first column.
    ``opens`` says that it is the first thing said under that heading. ``paragraph`` numbers the paragraphs, lists and
    tables of a source. ``table_head`` is the head of the table a row belongs to.
    """

    source: Source
    start: int
    end: int
    text: str
    kind: BlockKind
    heading: str
    opens: bool
    paragraph: int
    table_head: str = ""


@dataclass(slots=True)
class _Region:
    """Lines of one kind that follow one another under one heading."""

    kind: BlockKind
    start: int
    end: int
    heading: str


def quotable_blocks(sources: Sequence[Source]) -> list[QuotableBlock]:
    """All that could be quoted, in the order of the sources and then of the text; headings are left out."""
    return [block for source in sources for block in _blocks_of(source)]


def _blocks_of(source: Source) -> Iterator[QuotableBlock]:
    content, offset, passages = source.block.content, source.block.start, source.block.passages
    headings = [heading for passage in passages for heading in passage.heading_path]
    known = {_plain(heading).casefold() for heading in (*headings, source.block.best.document_title)}
    opened: set[str] = set()
    for paragraph, region in enumerate(_regions(content, known, "".join(passages[0].heading_path[-1:]))):
        for start, end, table_head in _cut(content, region):
            end = min(end, start + LONGEST_BLOCK)
            text = content[start:end]
            if len(_WORD.findall(text)) < 2:
                continue
            subject = _RECORD_SUBJECT.match(text) if region.kind is BlockKind.ROW else None
            heading = _plain(subject[1]) if subject else region.heading
            opens = bool(heading) and heading not in opened
            opened.add(heading)
            place = (source, offset + start, offset + end)
            yield QuotableBlock(*place, text, region.kind, heading, opens, paragraph, table_head)


def _regions(content: str, known_headings: set[str], heading: str) -> list[_Region]:
    """Prose, code and tables between the headings, in order."""
    regions: list[_Region] = []
    in_fence = False
    line_end = 0
    for match in _LINE.finditer(content):
        line = match.group()
        after_gap = not in_fence and content.count("\n", line_end, match.start()) > 1
        line_end = match.end()
        is_fence = bool(_FENCE.match(line))
        if is_fence or in_fence:
            kind = BlockKind.CODE
            in_fence ^= is_fence
        elif _UNDERLINE.match(line):
            continue
        elif markdown := _MARKDOWN_HEADING.match(line):
            heading = _plain(markdown[1].rstrip(" \t#"))
            continue
        elif _plain(line).casefold() in known_headings:
            heading = _plain(line)
            continue
        else:
            kind = BlockKind.ROW if _TABLE_ROW.match(line) or _RECORD.match(line) else BlockKind.SENTENCE
        last = regions[-1] if regions and not after_gap else None
        if last and last.kind is kind and last.heading == heading and last.end >= match.start() - 1:
            last.end = match.end()
        else:
            regions.append(_Region(kind, *match.span(), heading))
    return regions


def _cut(content: str, region: _Region) -> Iterator[tuple[int, int, str]]:
    """Start and end of each block of a region, and the table's head that it is read with."""
    if region.kind is BlockKind.CODE:
        yield region.start, region.end, ""
    elif region.kind is BlockKind.SENTENCE:
        yield from ((start, end, "") for start, end, _break in split_sentences(content, region.start, region.end))
    else:
        rows = [match.span() for match in _LINE.finditer(content, region.start, region.end)]
        head = ""
        if len(rows) > 2 and _TABLE_RULE.match(content[slice(*rows[1])]):
            head = content[rows[0][0] : rows[1][1]]
            rows = rows[2:]
        yield from ((start, end, head) for start, end in rows)


def _plain(heading: str) -> str:
    return " ".join(_MARKUP.sub("", heading).split())
