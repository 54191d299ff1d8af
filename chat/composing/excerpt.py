"""A part of a source that an answer shows. PURE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chat.types import ContextSource

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of one source that is shown: the document's text at ``spans``, in order, what lies between left out.

    A span that reaches beyond the source is cut there; one that is cut at its end makes the excerpt go on.
    ``table_head`` is shown above rows of a table that stand without it. ``heading`` is shown above what needs it.
    ``goes_on`` says that the block is longer than what is shown. ``value`` is the value that answers the question, if
    one could be told, as start and end in the document.
    """

    source: ContextSource
    spans: tuple[Span, ...]
    heading: str = ""
    table_head: str = ""
    goes_on: bool = False
    value: Span | None = None

    def __post_init__(self) -> None:
        first, last = self.source.block.start, self.source.block.end
        if self.spans[0][0] < first or self.spans[-1][1] > last:
            inside = ((max(start, first), min(end, last)) for start, end in self.spans)
            object.__setattr__(self, "goes_on", self.goes_on or self.spans[-1][1] > last)
            object.__setattr__(self, "spans", tuple((start, end) for start, end in inside if start < end))

    @property
    def start(self) -> int:
        return self.spans[0][0]

    @property
    def end(self) -> int:
        return self.spans[-1][1]

    def holds(self, start: int, end: int) -> bool:
        """Whether ``document.text[start:end]`` is shown."""
        return any(first <= start and end <= last for first, last in self.spans)

    def joined(self, other: Excerpt) -> Excerpt:
        """All from the beginning of the first to the end of the last of two excerpts that overlap."""
        return replace(self, spans=((min(self.start, other.start), max(self.end, other.end)),), value=None)

    def overlaps(self, other: Excerpt) -> bool:
        is_same_document = self.source.block.best.document_id == other.source.block.best.document_id
        return is_same_document and self.start < other.end and other.start < self.end
