"""The blocks of a document's text: what a reader would quote whole. PURE."""

from __future__ import annotations

from retrieval.text.blocks.finding import BLOCKS_VERSION, find_blocks
from retrieval.text.blocks.types import Block, BlockKind

__all__ = ["BLOCKS_VERSION", "Block", "BlockKind", "find_blocks"]
