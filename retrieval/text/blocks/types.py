"""The blocks of a document's text: paragraphs, lists, procedures, tables, code. PURE.

A block is the unit of an answer: what a reader would quote whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


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
