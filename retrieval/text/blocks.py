"""The blocks of a document's text: what a reader would quote whole. PURE."""

from __future__ import annotations

from retrieval.text.block import Block, BlockKind
from retrieval.text.finding import BLOCKS_VERSION, find_blocks

__all__ = ["BLOCKS_VERSION", "Block", "BlockKind", "find_blocks"]
