"""The block of a document and its stored form. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias


class BlockKind(StrEnum):
    """The kind of a block.

    ``LIST`` has bullets, ``STEPS`` are numbered. ``TABLE`` is Markdown or HTML; ``RECORDS`` are lines of ``column:
    value; column: value``.
    """

    PARAGRAPH = "paragraph"
    LIST = "list"
    STEPS = "steps"
    TABLE = "table"
    RECORDS = "records"
    CODE = "code"
    QUESTION = "question"


class Block(NamedTuple):
    """A block of a document: ``text[start:end]``.

    ``heading_start`` to ``section_end`` is its section; None and the text's length without headings. ``lead_in`` is the
    (start, end) of its introducing sentence or question.
    """

    start: int
    end: int
    kind: BlockKind
    heading_start: int | None
    section_end: int
    lead_in: tuple[int, int] | None = None

    def moved(self, by: int) -> Block:
        return Block(
            self.start + by,
            self.end + by,
            self.kind,
            None if self.heading_start is None else self.heading_start + by,
            self.section_end + by,
            self.lead_in and (self.lead_in[0] + by, self.lead_in[1] + by),
        )


# A row is [start, end, kind, heading_start, section_end], then start and end of the lead-in, if any.
Row: TypeAlias = list[int | str | None]

_KIND_OF = {kind.value[0]: kind for kind in BlockKind}


def from_rows(rows: Iterable[Sequence[Any]], origin: int) -> tuple[Block, ...]:
    return tuple(
        Block(start, end, _KIND_OF[letter], heading, section_end, tuple(lead_in) or None).moved(origin)
        for start, end, letter, heading, section_end, *lead_in in rows
    )


def rows_touching(blocks: Sequence[Block], ranges: Iterable[tuple[int, int]]) -> list[list[Row]]:
    """Return for each range the rows of the blocks that overlap it, relative to its start; both are sorted."""
    found = []
    first = 0
    for start, end in ranges:
        while first < len(blocks) and blocks[first].end <= start:
            first += 1
        after = first
        while after < len(blocks) and blocks[after].start < end:
            after += 1
        near = [block.moved(-start) for block in blocks[first:after]]
        found.append(
            [
                [each.start, each.end, each.kind.value[0], each.heading_start, each.section_end, *(each.lead_in or ())]
                for each in near
            ]
        )
    return found
