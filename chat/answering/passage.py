"""The part of a passage that an answer shows: its section, whole where it fits a screen, else what stands around the
place that is nearest to the question. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chat.answering.units import QuotableUnit, UnitKind
from chat.answering.words import stems
from retrieval.text.block import Block, BlockKind
from retrieval.text.block_items import split_items
from retrieval.text.sentences import split_sentences

if TYPE_CHECKING:
    from chat.types import ContextSource

Span = tuple[int, int]

# About a screen of prose. A list, a procedure, a table and code are of use only as a whole, and may be longer.
LONGEST_PROSE = 900
LONGEST_BLOCK = 2_000
# Of a table that is longer, this much is shown around the marked row.
LONGEST_ROWS = 700


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of one source that is shown: the document's text at ``spans``, in order; what lies between is left out.

    ``table_head`` is shown above rows that stand without it, ``heading`` above a text that needs it. ``goes_on`` says
    that the section is longer than what is shown.
    """

    source: ContextSource
    spans: tuple[Span, ...]
    heading: str = ""
    table_head: str = ""
    goes_on: bool = False


def cut_excerpt(question: str, unit: QuotableUnit) -> Excerpt:
    """What is shown of the passage that holds ``unit``, the place nearest to the question.

    All of the unit's section, where it fits a screen; else the unit's block, what a text that ends in a colon
    announces, and what fits around it; of a block that is longer, what fits around the unit, a list with its lead-in
    and rows with their header.
    """
    if unit.block.kind is BlockKind.RECORDS:
        return Excerpt(unit.source, ((unit.start, unit.end),), table_head=unit.table_head)
    section = list(unit.section.blocks)
    at = section.index(unit.block)
    first, last = 0, len(section) - 1
    if not _fits(section):
        first, last = _with_announced(unit.source, section, at, at)
        if section[last].end - section[first].start > LONGEST_BLOCK:
            return _within_block(question, unit)
        first, last = _grown(section, first, last)
    spans = _clipped(unit.source, [(block.start, block.end) for block in section[first : last + 1]])
    is_cut = section[last].end > unit.source.block.end
    return _with_heading(question, unit, spans, goes_on=is_cut or last + 1 < len(section))


def _fits(blocks: Sequence[Block]) -> bool:
    length = blocks[-1].end - blocks[0].start
    return length <= (LONGEST_PROSE if len(blocks) > 1 or blocks[0].kind is BlockKind.PARAGRAPH else LONGEST_BLOCK)


def _with_announced(source: ContextSource, section: Sequence[Block], first: int, last: int) -> tuple[int, int]:
    """The range of blocks, with the one that announces its first, and those that its last announces."""
    while first > 0 and _announces(source, section[first - 1]):
        first -= 1
    while last + 1 < len(section) and _announces(source, section[last]):
        last += 1
    return first, last


def _announces(source: ContextSource, block: Block) -> bool:
    return text_of(source, block.start, block.end).rstrip(" \n*_").endswith(":")


def _grown(section: Sequence[Block], first: int, last: int) -> tuple[int, int]:
    """The range of blocks with those before it, then those behind it, as far as they fit."""
    while first > 0 and section[last].end - section[first - 1].start <= LONGEST_PROSE:
        first -= 1
    while last + 1 < len(section) and section[last + 1].end - section[first].start <= LONGEST_PROSE:
        last += 1
    return first, last


def _within_block(question: str, unit: QuotableUnit) -> Excerpt:
    """Of a block that is too long: the sentences, items, rows or lines around the unit."""
    content, offset = unit.source.block.content, unit.source.block.start
    block = unit.block.moved(-offset)
    if unit.kind is UnitKind.CODE:
        return Excerpt(unit.source, ((unit.start, unit.end),), goes_on=True)
    if unit.kind is UnitKind.SENTENCE:
        found = split_sentences(content, max(0, block.start), min(len(content), block.end))
        pieces = [(start + offset, end + offset) for start, end, _break in found]
    else:
        pieces = split_items(content, unit.block, offset)
    first = last = next((at for at, (start, end) in enumerate(pieces) if start <= unit.start < end), -1)
    if first < 0:
        return Excerpt(unit.source, ((unit.start, unit.end),), table_head=unit.table_head, goes_on=True)
    longest = LONGEST_ROWS if unit.kind is UnitKind.ROW else LONGEST_PROSE
    while last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= longest:
        last += 1
    while first > 0 and pieces[last][1] - pieces[first - 1][0] <= longest:
        first -= 1
    spans = [(pieces[first][0], pieces[last][1])]
    lead_in = unit.block.lead_in
    if unit.kind is UnitKind.ITEM and lead_in is not None and lead_in[0] >= offset and first > 0:
        spans.insert(0, lead_in)
    table_head = unit.table_head if first > 0 else ""
    return Excerpt(unit.source, tuple(spans), table_head=table_head, goes_on=last + 1 < len(pieces))


def _clipped(source: ContextSource, spans: Sequence[Span]) -> tuple[Span, ...]:
    """The spans as far as they lie in the source."""
    first, last = source.block.start, source.block.end
    inside = ((max(start, first), min(end, last)) for start, end in spans)
    return tuple((start, end) for start, end in inside if start < end)


def _with_heading(question: str, unit: QuotableUnit, spans: tuple[Span, ...], *, goes_on: bool) -> Excerpt:
    """The excerpt under its heading, where a word of the question stands in the heading alone."""
    shown = set(stems(" ".join(text_of(unit.source, start, end) for start, end in spans)))
    heading = unit.section.heading
    needs_heading = bool((set(stems(question)) & set(stems(heading))) - shown)
    return Excerpt(unit.source, spans, heading=heading if needs_heading else "", goes_on=goes_on)


def text_of(source: ContextSource, start: int, end: int) -> str:
    """The document's ``text[start:end]``, as far as it lies in the source."""
    offset = source.block.start
    return source.block.content[max(0, start - offset) : max(0, end - offset)]
