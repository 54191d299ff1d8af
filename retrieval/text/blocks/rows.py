"""Blocks as they are stored with a chunk: rows of numbers, relative to the chunk's start. PURE.

A chunk that is moved within its document, because something before it has changed, keeps its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from retrieval.text.blocks.types import Block, BlockKind

# [start, end, kind, heading_start, section_end], then the start and end of the lead-in where there is one.
Row: TypeAlias = list[int | str | None]

_LETTER_OF = {
    BlockKind.PARAGRAPH: "p",
    BlockKind.LIST: "l",
    BlockKind.STEPS: "s",
    BlockKind.TABLE: "t",
    BlockKind.RECORDS: "r",
    BlockKind.CODE: "c",
    BlockKind.QUESTION: "q",
}
_KIND_OF = {letter: kind for kind, letter in _LETTER_OF.items()}


def to_row(block: Block, origin: int) -> Row:
    heading = None if block.heading_start is None else block.heading_start - origin
    row: Row = [block.start - origin, block.end - origin, _LETTER_OF[block.kind], heading, block.section_end - origin]
    return row if block.lead_in is None else [*row, block.lead_in[0] - origin, block.lead_in[1] - origin]


def from_rows(rows: Iterable[Sequence[int | str | None]], origin: int) -> tuple[Block, ...]:
    """The blocks that were stored with a chunk that starts at ``origin``; rows of an older form are left out."""
    return tuple(_from_row(row, origin) for row in rows if row[2] in _KIND_OF)


def _from_row(row: Sequence[int | str | None], origin: int) -> Block:
    start, end, letter, heading, section_end, *lead_in = row
    return Block(
        _at(start, origin),
        _at(end, origin),
        _KIND_OF[str(letter)],
        None if heading is None else _at(heading, origin),
        _at(section_end, origin),
        (_at(lead_in[0], origin), _at(lead_in[1], origin)) if lead_in else None,
    )


def _at(offset: int | str | None, origin: int) -> int:
    return origin + int(offset or 0)


def rows_touching(blocks: Sequence[Block], ranges: Iterable[tuple[int, int]]) -> list[list[Row]]:
    """For each range, in order of their starts, the rows of the blocks that hold some of it, relative to its start.

    Blocks do not overlap.
    """
    found = []
    first = 0
    for start, end in ranges:
        while first < len(blocks) and blocks[first].end <= start:
            first += 1
        after = first
        while after < len(blocks) and blocks[after].start < end:
            after += 1
        found.append([to_row(block, start) for block in blocks[first:after]])
    return found
