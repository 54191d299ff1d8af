"""What a block is, and how it is stored with a chunk. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias


class BlockKind(StrEnum):
    """``LIST`` has bullets, ``STEPS`` are numbered; ``TABLE`` is one of Markdown, or one of HTML within Markdown, the
    rows of ``RECORDS`` are lines of ``column: value; column: value``. ``QUESTION`` is a question with its answer."""

    PARAGRAPH = "paragraph"
    LIST = "list"
    STEPS = "steps"
    TABLE = "table"
    RECORDS = "records"
    CODE = "code"
    QUESTION = "question"


class Block(NamedTuple):
    """``text[start:end]`` of a document.

    ``heading_start`` to ``section_end`` is the section it stands in: the innermost heading, up to the next one of any
    level. Of a document without headings, both are None and the text's length. ``lead_in`` is the sentence that
    introduces a list, a table or code ("The following are needed:"), and of a QUESTION the question, as start and end;
    it is part of the block.
    """

    start: int
    end: int
    kind: BlockKind
    heading_start: int | None
    section_end: int
    lead_in: tuple[int, int] | None = None

    def moved(self, by: int) -> Block:
        """The block with its offsets counted from another place."""
        return Block(
            self.start + by,
            self.end + by,
            self.kind,
            None if self.heading_start is None else self.heading_start + by,
            self.section_end + by,
            self.lead_in and (self.lead_in[0] + by, self.lead_in[1] + by),
        )


# [start, end, kind, heading_start, section_end], then the start and end of the lead-in where there is one.
Row: TypeAlias = list[int | str | None]

# A row has the first letter of the kind.
_KIND_OF = {kind.value[0]: kind for kind in BlockKind}


def from_rows(rows: Iterable[Sequence[Any]], origin: int) -> tuple[Block, ...]:
    """The blocks that were stored with a chunk that starts at ``origin``."""
    return tuple(
        Block(start, end, _KIND_OF[letter], heading, section_end, tuple(lead_in) or None).moved(origin)
        for start, end, letter, heading, section_end, *lead_in in rows
    )


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
        near = [block.moved(-start) for block in blocks[first:after]]
        found.append(
            [
                [each.start, each.end, each.kind.value[0], each.heading_start, each.section_end, *(each.lead_in or ())]
                for each in near
            ]
        )
    return found
