"""The result of a computation over a table as sources and as the text of an answer."""

from __future__ import annotations

from collections.abc import Sequence

from chat.table_answers import MOST_ROWS, fill_in_markers, render_result
from chat.types import Source
from retrieval.search.assembly import blocks_of
from retrieval.search.passages import load_passages
from retrieval.tables.types import ResultRow, TableResult


def cite_rows(result: TableResult, sources: Sequence[Source]) -> tuple[Source, ...]:
    """The rows that are shown as sources of their own, and behind them the others, numbered anew."""
    passages = load_passages({row.chunk_id for row in result.rows[:MOST_ROWS]})
    rows = blocks_of(passages.values())
    cited = {passage.chunk_id for block in rows for passage in block.passages}
    others = [source.block for source in sources if source.block.best.chunk_id not in cited]
    return tuple(Source(marker, block) for marker, block in enumerate([*rows, *others], start=1))


def render_computed(result: TableResult, sources: Sequence[Source], language: str) -> str:
    """The answer's text, each row with the marker of its source."""

    def marker_of(row: ResultRow) -> str:
        for source in sources:
            block = source.block
            if block.best.document_id == result.document_id and block.start <= row.start < block.end:
                return f"[{source.marker}]"
        return ""

    return fill_in_markers(render_result(result, language), marker_of)
