"""Choose the part of a passage that an answer shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chat.answering.checking.words import find_stems
from chat.answering.units import QuotableUnit, QuotableUnitKind, SourceSection, find_sections
from chat.types import ContextSource
from retrieval.text.block import Block, BlockKind
from retrieval.text.block_items import split_items
from retrieval.text.markup import strip_markup
from retrieval.text.sentences import split_sentences
from retrieval.text.word_lists import fill_in

Span = tuple[int, int]

# The most characters of an excerpt. Part of a list, procedure, table or piece of code is of no use, so these may be
# longer than prose.
LONGEST_PROSE = 900
LONGEST_BLOCK = 2_000
# A section and its sub-sections are shown together up to this many characters.
LONGEST_OPENING = 1_400
# The last sentence of a block may announce the next block ("Do the following:"). It is looked for in the block's last
# LONGEST_ANNOUNCEMENT characters. A longer paragraph does not introduce a table.
LONGEST_ANNOUNCEMENT = 240
LONGEST_ROWS = 700


# A sentence announces the next block if it contains a colon or one of these words.
_ANNOUNCEMENT = re.compile(fill_in(r":|\b<announcing>\b", "documents"), re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?]\s")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of one source to show: the document's text at ``spans``, in order.

    ``table_head`` and ``heading`` are shown above it. ``goes_on`` is true if the section continues after it.
    """

    source: ContextSource
    spans: tuple[Span, ...]
    heading: str = ""
    table_head: str = ""
    goes_on: bool = False

    def shows(self, unit: QuotableUnit) -> bool:
        return self.source.block.best.document_id == unit.source.block.best.document_id and any(
            start <= unit.start and unit.end <= end for start, end in self.spans
        )


def build_excerpt(question: str, unit: QuotableUnit, *, is_card: bool = False) -> Excerpt:
    """Return the excerpt to show around ``unit``, the sentence or row that is closest to the question.

    If ``is_card``, the excerpt is a search result, not the answer, and a short passage is shown completely.
    """
    if unit.block.kind is BlockKind.RECORDS:
        return Excerpt(unit.source, ((unit.start, unit.end),), table_head=unit.table_head)
    section = list(unit.section.blocks)
    first, last = 0, len(section) - 1
    if _fits_in_excerpt(unit.source, section):
        sections = _add_subsections(unit, LONGEST_PROSE if is_card else 0)
        if len(sections) > 1:
            return _build_section_excerpt(question, unit, sections)
    else:
        at = section.index(unit.block)
        first, last = _extend_to_announced_blocks(unit.source, section, at, at)
        if _measure_length(unit.source, section[first].start, section[last].end) > LONGEST_BLOCK:
            return _cut_block(unit)
        first, last = _grow_span(unit.source, section, first, last)
    spans = _clip_spans(unit.source, [(block.start, block.end) for block in section[first : last + 1]])
    is_cut = section[last].end > unit.source.block.end
    return _build_excerpt_with_heading(question, unit, spans, goes_on=is_cut or last + 1 < len(section))


def _measure_length(source: ContextSource, start: int, end: int) -> int:
    text = read_text(source, start, end)
    return end - start if "](" not in text else end - start - len(text) + len(strip_markup(text, all_links=True))


def _fits_in_excerpt(source: ContextSource, blocks: Sequence[Block]) -> bool:
    length = _measure_length(source, blocks[0].start, blocks[-1].end)
    return length <= (LONGEST_PROSE if len(blocks) > 1 or blocks[0].kind is BlockKind.PARAGRAPH else LONGEST_BLOCK)


def _add_subsections(unit: QuotableUnit, longest_passage: int) -> Sequence[SourceSection]:
    """Return the unit's section, followed by as many of its sub-sections as fit.

    If the passage's sections together have at most ``longest_passage`` characters, return all of these instead.
    """
    sections, best = find_sections(unit.source), unit.source.block.best
    first = last = sections.index(unit.section)
    inside = [n for n, each in enumerate(sections) if each.blocks[0].start < best.end and each.end > best.start]
    if first in inside and (
        _measure_length(unit.source, sections[inside[0]].blocks[0].start, sections[inside[-1]].end) <= longest_passage
    ):
        first, last = inside[0], inside[-1]
    level = unit.section.level
    for each in sections[last + 1 :]:
        if level is None or each.level is None or each.level <= level:
            break
        if _measure_length(unit.source, sections[first].blocks[0].start, each.end) > LONGEST_OPENING:
            break
        last += 1
    return sections[first : last + 1]


def _build_section_excerpt(question: str, unit: QuotableUnit, sections: Sequence[SourceSection]) -> Excerpt:
    start, end = sections[0].blocks[0].start, sections[-1].end
    spans = _clip_spans(unit.source, [(start, end)])
    if sections[0] == unit.section:
        return _build_excerpt_with_heading(question, unit, spans, goes_on=end > unit.source.block.end)
    return Excerpt(unit.source, spans, heading=sections[0].heading, goes_on=end > unit.source.block.end)


def _extend_to_announced_blocks(
    source: ContextSource, section: Sequence[Block], first: int, last: int
) -> tuple[int, int]:
    while first > 0 and _announces_next_block(source, section[first - 1]):
        first -= 1
    while last + 1 < len(section) and (
        _announces_next_block(source, section[last]) or _introduces_table(section[last], section[last + 1])
    ):
        last += 1
    return first, last


def _announces_next_block(source: ContextSource, block: Block) -> bool:
    if block.kind is not BlockKind.PARAGRAPH:
        return read_text(source, block.start, block.end).rstrip(" \n*_").endswith(":")
    text = read_text(source, max(block.start, block.end - LONGEST_ANNOUNCEMENT), block.end)
    return bool(_ANNOUNCEMENT.search(_SENTENCE_END.split(text)[-1]))


def _introduces_table(block: Block, following: Block) -> bool:
    is_short = block.kind is BlockKind.PARAGRAPH and block.end - block.start <= LONGEST_ANNOUNCEMENT
    return is_short and following.kind is BlockKind.TABLE


def _grow_span(source: ContextSource, section: Sequence[Block], first: int, last: int) -> tuple[int, int]:
    while first > 0 and _measure_length(source, section[first - 1].start, section[last].end) <= LONGEST_PROSE:
        first -= 1
    while (
        last + 1 < len(section)
        and _measure_length(source, section[first].start, section[last + 1].end) <= LONGEST_PROSE
    ):
        last += 1
    return first, last


def _cut_block(unit: QuotableUnit) -> Excerpt:
    content, offset = unit.source.block.content, unit.source.block.start
    block = unit.block.copy_shifted(-offset)
    if unit.kind is QuotableUnitKind.CODE:
        return Excerpt(unit.source, ((unit.start, unit.end),), goes_on=True)
    if unit.kind is QuotableUnitKind.SENTENCE:
        found = split_sentences(content, max(0, block.start), min(len(content), block.end))
        pieces = [(start + offset, end + offset) for start, end, _break in found]
    else:
        pieces = split_items(content, unit.block, offset)
    first = last = next((at for at, (start, end) in enumerate(pieces) if start <= unit.start < end), -1)
    if first < 0:
        return Excerpt(unit.source, ((unit.start, unit.end),), table_head=unit.table_head, goes_on=True)
    longest = LONGEST_ROWS if unit.kind is QuotableUnitKind.ROW else LONGEST_PROSE
    while last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= longest:
        last += 1
    while first > 0 and pieces[last][1] - pieces[first - 1][0] <= longest:
        first -= 1
    if unit.block.kind is BlockKind.STEPS:
        first = 0
        while last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= LONGEST_BLOCK:
            last += 1
    spans = [(pieces[first][0], pieces[last][1])]
    lead_in = unit.block.lead_in
    if unit.kind is QuotableUnitKind.ITEM and lead_in is not None and lead_in[0] >= offset and first > 0:
        spans.insert(0, lead_in)
    table_head = unit.table_head if first > 0 else ""
    return Excerpt(unit.source, tuple(spans), table_head=table_head, goes_on=last + 1 < len(pieces))


def _clip_spans(source: ContextSource, spans: Sequence[Span]) -> tuple[Span, ...]:
    first, last = source.block.start, source.block.end
    inside = ((max(start, first), min(end, last)) for start, end in spans)
    return tuple((start, end) for start, end in inside if start < end)


def _build_excerpt_with_heading(
    question: str, unit: QuotableUnit, spans: tuple[Span, ...], *, goes_on: bool
) -> Excerpt:
    shown = set(find_stems(" ".join(read_text(unit.source, start, end) for start, end in spans)))
    heading = unit.section.heading
    begins = next((block for block in unit.section.blocks if block.start <= spans[0][0] < block.end), None)
    lists = (BlockKind.LIST, BlockKind.STEPS)
    announces = begins is not None and begins.kind in lists and begins.lead_in is None
    needs_heading = announces or bool((set(find_stems(question)) & set(find_stems(heading))) - shown)
    return Excerpt(unit.source, spans, heading=heading if needs_heading else "", goes_on=goes_on)


def read_text(source: ContextSource, start: int, end: int) -> str:
    """Return the document's ``text[start:end]``, cut at the borders of the source's block."""
    offset = source.block.start
    return source.block.content[max(0, start - offset) : max(0, end - offset)]
