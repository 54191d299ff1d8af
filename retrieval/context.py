"""What a search finds, as a reader sees it: passages, and the context that is put together of them. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retrieval.text.block import Block


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with what is needed to show and cite it. ``content`` is the document's ``text[start:end]``.

    ``blocks`` are those of the document that hold some of it, at offsets of the document: they can begin before the
    passage, and end after it. ``page_unit`` is what a page of the document is: "page", or "slide". ``collection`` is
    the collection's slug, ``collection_name`` what readers call it.
    """

    chunk_id: int
    document_id: int
    document_title: str
    document_url: str
    source: str
    collection: str
    ordinal: int
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    content: str
    content_hash: str
    token_count: int
    blocks: tuple[Block, ...] = ()
    page_unit: str = "page"
    collection_name: str = ""

    @property
    def section(self) -> str:
        """Headings above the passage, outermost first; empty when there are none."""
        return " › ".join(self.heading_path)

    @property
    def page_name(self) -> str:
        """Such as "page 3", in English; empty where there are no pages."""
        return f"{self.page_unit} {self.page}" if self.page else ""


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A stretch of one document that goes into the context: a hit, what it was merged with, and its neighbours.

    ``content`` is the document's ``text[start:end]``, but for the kind of white space between two passages.
    ``passages`` are those it was put together from, in reading order; ``best`` is the one that ranked highest.
    ``blocks`` are the blocks of the document that hold some of it, at offsets of the document, in reading order.
    """

    best: Passage
    passages: tuple[Passage, ...]
    content: str
    start: int
    end: int
    score: float
    tokens: int
    blocks: tuple[Block, ...] = ()

    def passage_at(self, offset: int) -> Passage:
        """The passage that holds this offset of the document; ``best`` where none does."""
        if self.best.start <= offset < self.best.end:
            return self.best
        return next((passage for passage in self.passages if passage.start <= offset < passage.end), self.best)


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """Blocks in the order in which they are numbered and shown to a model, and how they came about."""

    blocks: tuple[ContextBlock, ...]
    statistics: Mapping[str, int]
