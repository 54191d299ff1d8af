"""The result of a computation over a table as sources and as the text of an answer."""

from __future__ import annotations

from collections.abc import Sequence

from chat.answering.computed_text import MOST_ROWS, fill_in_markers, render_result
from chat.types import ContextSource
from retrieval.search.assembly import blocks_of
from retrieval.search.passage_rows import load_passages
from retrieval.tables.results import ResultRow, TableResult


def cite_rows(result: TableResult, sources: Sequence[ContextSource]) -> tuple[ContextSource, ...]:
    """The rows that are shown as sources of their own, and behind them the others, numbered anew."""
    passages = load_passages({row.chunk_id for row in result.rows[:MOST_ROWS]})
    rows = blocks_of(passages.values())
    cited = {passage.chunk_id for block in rows for passage in block.passages}
    others = [source.block for source in sources if source.block.best.chunk_id not in cited]
    return tuple(ContextSource(marker, block) for marker, block in enumerate([*rows, *others], start=1))


def cite_further_rows(result: TableResult, sources: Sequence[ContextSource]) -> tuple[ContextSource, ...]:
    """The sources, their markers unchanged, and behind them the rows that are shown and stand in none of them."""
    rows = [row for row in result.rows[:MOST_ROWS] if _find_source(row, result, sources) is None]
    further = blocks_of(load_passages({row.chunk_id for row in rows}).values())
    return (*sources, *(ContextSource(marker, block) for marker, block in enumerate(further, start=len(sources) + 1)))


def rows_behind(result: TableResult, sources: Sequence[ContextSource]) -> tuple[ContextSource, ...]:
    """Of the sources, those that hold a row that is shown."""
    found = [_find_source(row, result, sources) for row in result.rows[:MOST_ROWS]]
    return tuple({source.marker: source for source in found if source is not None}.values())


def render_computed(result: TableResult, sources: Sequence[ContextSource], language: str) -> str:
    """The answer's text, each row with the marker of its source."""

    def marker_of(row: ResultRow) -> str:
        source = _find_source(row, result, sources)
        return f"[{source.marker}]" if source is not None else ""

    return fill_in_markers(render_result(result, language), marker_of)


def _find_source(row: ResultRow, result: TableResult, sources: Sequence[ContextSource]) -> ContextSource | None:
    for source in sources:
        block = source.block
        if block.best.document_id == result.document_id and block.start <= row.start < block.end:
            return source
    return None
