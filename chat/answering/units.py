"""Cut sources into units that can be quoted: sentences, list items, table rows and code, with exact offsets."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from chat.answering.checking.citations import find_code_spans
from retrieval.text.block import Block, BlockKind
from retrieval.text.block_items import find_table_header, read_cells, split_items
from retrieval.text.blocks import find_blocks
from retrieval.text.extracted import strip_title
from retrieval.text.markup import opens_mkdocs_block, strip_markup
from retrieval.text.sentences import split_sentences
from retrieval.text.terms import spell_out_symbols

if TYPE_CHECKING:
    from chat.types import ContextSource

LONGEST_UNIT = 700

_HTML_ROW = re.compile(r"<tr\b", re.IGNORECASE)
_RECORD_SUBJECT = re.compile(r"[^\s:;|][^:;]{0,60}: ([^;]+); ")
_MARKDOWN_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]++(.*)$")
_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"[^\W_]+")
_CONTENTS = re.compile(r"(?:[-*+\d.)|,;\s]*+\[[^\]\n]++\]\((?![a-z][a-z\d+.-]*:|//)[^)\s]*+\))++[|\s]*+", re.IGNORECASE)


class QuotableUnitKind(StrEnum):
    SENTENCE = "sentence"
    ITEM = "item"
    ROW = "row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class QuotableUnit:
    """A part of a source that can be quoted: a sentence, list item, table row or piece of code.

    It is at ``text[start:end]`` of the document. ``heading`` is the heading above it; for a record, the value of its
    first column.
    """

    source: ContextSource
    start: int
    end: int
    text: str
    kind: QuotableUnitKind
    heading: str
    block: Block
    section: SourceSection
    table_head: str = ""


@dataclass(frozen=True, slots=True)
class SourceSection:
    """The blocks of a source below one heading, up to the next heading.

    ``level`` is 1 for the outermost headings, 0 without a heading, and None if unknown.
    """

    heading: str
    blocks: tuple[Block, ...]
    level: int | None = None

    @property
    def end(self) -> int:
        return self.blocks[-1].end


def list_blocks(source: ContextSource) -> tuple[Block, ...]:
    """Return the blocks (paragraphs, lists, tables etc.) of a search result's text in order."""
    context = source.block
    if context.blocks:
        return context.blocks
    known = {" ".join(heading.split()).casefold() for passage in context.passages for heading in passage.heading_path}
    known.add(" ".join(context.best.document_title.split()).casefold())
    codes = [code for code in find_code_spans(context.content) if code.fence]
    headings = [
        (match.start(), strip_title(match.group()))
        for match in _LINE.finditer(context.content)
        if (_MARKDOWN_HEADING.match(match.group()) or strip_title(match.group()).casefold() in known)
        and not any(code.start <= match.start() < code.end for code in codes)
    ]
    return tuple(block.copy_shifted(context.start) for block in find_blocks(context.content, headings))


def find_quotable_units(sources: Sequence[ContextSource]) -> list[QuotableUnit]:
    """Return the sentences, list items, table rows and code of the sources, in the order of the text."""
    return [unit for source in sources for unit in _cut_source_into_units(source)]


@functools.lru_cache(maxsize=128)
def _cut_source_into_units(source: ContextSource) -> tuple[QuotableUnit, ...]:
    units = []
    content, offset = source.block.content, source.block.start
    for section in find_sections(source):
        for block in section.blocks:
            for start, end, kind, table_head in _split_block_into_units(content, block.copy_shifted(-offset)):
                text = content[start : min(end, start + LONGEST_UNIT)]
                if (
                    len(_WORD.findall(spell_out_symbols(strip_markup(text)))) < 2
                    or _CONTENTS.fullmatch(text)
                    or opens_mkdocs_block(text)
                ):
                    continue
                subject = _RECORD_SUBJECT.match(text) if block.kind is BlockKind.RECORDS else None
                heading = (
                    strip_title(subject[1])
                    if subject
                    else _find_question(content, block.copy_shifted(-offset)) or section.heading
                )
                place = (source, offset + start, offset + start + len(text))
                units.append(QuotableUnit(*place, text, kind, heading, block, section, table_head))
    return tuple(units)


@functools.lru_cache(maxsize=128)
def find_sections(source: ContextSource) -> tuple[SourceSection, ...]:
    found = []
    for heading_start, blocks in groupby(list_blocks(source), key=attrgetter("heading_start")):
        own = tuple(blocks)
        heading = _find_heading(source, heading_start, own[0].start)
        found.append(SourceSection(heading, own, _find_level(source, heading_start)))
    return tuple(found)


def _find_level(source: ContextSource, heading_start: int | None) -> int | None:
    if heading_start is None:
        return 0
    context = source.block
    if context.start <= heading_start < context.end:
        line = context.content[heading_start - context.start :].lstrip("\n").split("\n", 1)[0]
        if match := _MARKDOWN_HEADING.match(line):
            return len(match[1])
    return next((len(each.heading_path) for each in context.passages if each.start == heading_start), None)


def _split_block_into_units(content: str, block: Block) -> Iterator[tuple[int, int, QuotableUnitKind, str]]:
    first, last = max(0, block.start), min(len(content), block.end)
    if block.lead_in is not None and block.lead_in[0] >= first:
        start, first = block.lead_in[0], min(max(first, block.lead_in[1]), last)
        # A question in an FAQ is not quoted: it is the heading of its answer.
        if block.kind is not BlockKind.QUESTION:
            yield start, first, QuotableUnitKind.SENTENCE, ""
    if block.kind is BlockKind.CODE:
        while first < last and content[first] == "\n":
            first += 1
        yield first, last, QuotableUnitKind.CODE, ""
    elif block.kind in (BlockKind.PARAGRAPH, BlockKind.QUESTION):
        for start, end, _break in split_sentences(content, first, last):
            yield start, end, QuotableUnitKind.SENTENCE, ""
    else:
        kind = QuotableUnitKind.ITEM if block.kind in (BlockKind.LIST, BlockKind.STEPS) else QuotableUnitKind.ROW
        head = build_markdown_table_head(content, block)
        for start, end in split_items(content, block):
            yield start, end, kind, head


def _find_question(content: str, block: Block) -> str:
    if block.kind is not BlockKind.QUESTION or block.lead_in is None:
        return ""
    return strip_title(content[max(0, block.lead_in[0]) : max(0, block.lead_in[1])].lstrip("# "))


def build_markdown_table_head(content: str, block: Block) -> str:
    """Return the head of the block's table as Markdown; empty if ``content`` does not contain the head."""
    header = find_table_header(content, block)
    head = content[header[0] : header[1]] if header else ""
    is_whole = head.lstrip().startswith("<table")
    return convert_html_row_to_markdown(head, is_head=is_whole) if is_whole or _HTML_ROW.match(head.lstrip()) else head


def convert_html_row_to_markdown(row: str, *, is_head: bool) -> str:
    """Return an HTML table row as a Markdown row; if ``is_head``, with the line |---| below it."""
    cells = read_cells(row)
    line = f"| {' | '.join(cells)} |"
    return f"{line}\n|{'---|' * len(cells)}" if is_head else line


def _find_heading(source: ContextSource, heading_start: int | None, begin: int) -> str:
    context = source.block
    if heading_start is None:
        return strip_title(context.best.document_title)
    if not context.start <= heading_start < context.end:
        path = context.passage_at(begin).heading_path
        return path[-1] if path else ""
    line = context.content[heading_start - context.start :].lstrip("\n").split("\n", 1)[0]
    markdown = _MARKDOWN_HEADING.match(line)
    return strip_title(markdown[2].rstrip(" \t#") if markdown else line)


def build_text_to_encode(unit: QuotableUnit) -> str:
    """Return the unit's heading, the first line of its table head, and its text.

    The embedder needs the heading and the table head, because the meaning of a row or list item depends on them.
    """
    return " ".join(filter(None, [unit.heading, unit.table_head.split("\n", 1)[0], unit.text]))
