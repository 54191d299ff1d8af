"""A block of a document, such as a paragraph or table, and the form in which it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias


class BlockKind(StrEnum):
    """The kind of a block of text.

    ``LIST`` has bullets, ``STEPS`` numbers. ``TABLE`` is Markdown or HTML. ``RECORDS`` are lines `column: value; …`.
    """

    PARAGRAPH = "paragraph"
    LIST = "list"
    STEPS = "steps"
    TABLE = "table"
    RECORDS = "records"
    CODE = "code"
    QUESTION = "question"


class Block(NamedTuple):
    """A paragraph, list, table or other block of a document, at ``text[start:end]``.

    Its section begins at ``heading_start``, which is None without a heading, and ends at ``section_end``. ``lead_in``
    is the range of the sentence or question that introduces the block.
    """

    start: int
    end: int
    kind: BlockKind
    heading_start: int | None
    section_end: int
    lead_in: tuple[int, int] | None = None

    def copy_shifted(self, by: int) -> Block:
        return Block(
            self.start + by,
            self.end + by,
            self.kind,
            None if self.heading_start is None else self.heading_start + by,
            self.section_end + by,
            self.lead_in and (self.lead_in[0] + by, self.lead_in[1] + by),
        )


# A stored block: [start, end, kind, heading_start, section_end], and optionally start and end of its lead-in.
Row: TypeAlias = list[int | str | None]

_KIND_OF = {kind.value[0]: kind for kind in BlockKind}


def read_stored_blocks(rows: Iterable[Sequence[Any]], origin: int) -> tuple[Block, ...]:
    return tuple(
        Block(start, end, _KIND_OF[letter], heading, section_end, tuple(lead_in) or None).copy_shifted(origin)
        for start, end, letter, heading, section_end, *lead_in in rows
    )


def find_overlapping_rows(blocks: Sequence[Block], ranges: Iterable[tuple[int, int]]) -> list[list[Row]]:
    """Return, for each range, the blocks that overlap it, in the form to store.

    Offsets count from the range's start. ``blocks`` and ``ranges`` must be sorted.
    """
    found = []
    first = 0
    for start, end in ranges:
        while first < len(blocks) and blocks[first].end <= start:
            first += 1
        after = first
        while after < len(blocks) and blocks[after].start < end:
            after += 1
        near = [block.copy_shifted(-start) for block in blocks[first:after]]
        found.append(
            [
                [each.start, each.end, each.kind.value[0], each.heading_start, each.section_end, *(each.lead_in or ())]
                for each in near
            ]
        )
    return found
