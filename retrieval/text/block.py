"""What a block is, and how it is stored with a chunk. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias


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


@dataclass(frozen=True, slots=True)
class Block:
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
        return replace(
            self,
            start=self.start + by,
            end=self.end + by,
            heading_start=None if self.heading_start is None else self.heading_start + by,
            section_end=self.section_end + by,
            lead_in=None if self.lead_in is None else (self.lead_in[0] + by, self.lead_in[1] + by),
        )


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
