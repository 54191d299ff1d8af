"""The numbered sources of one question: what is searched, assembled, and computed over tables."""

from __future__ import annotations

from collections.abc import Sequence

from chat.answering.computed import cite_rows
from chat.types import ContextSource, Searched
from retrieval.infrastructure.tracing import annotate, span
from retrieval.search.assembly import assemble
from retrieval.search.passage_rows import load_neighbours
from retrieval.search.pipeline import search
from retrieval.search.profiles import NamedProfile
from retrieval.tables.answering import answer_from_tables
from retrieval.text.language import detect_language
from retrieval.types import SearchFilters, SearchMethod, Turn


def find_sources(
    question: str,
    filters: SearchFilters,
    method: SearchMethod | None,
    history: Sequence[Turn],
    profile: NamedProfile,
) -> Searched:
    """What is found, from one server."""
    result = search(question, filters, method=method, profile=profile, history=history)
    with span("assembly"):
        context = assemble(
            result.hits,
            load_neighbours,
            budget_tokens=profile.settings.context_budget_tokens,
            expand=profile.settings.context_neighbours,
            blocks=profile.settings.context_blocks,
        )
        annotate(blocks=len(context.blocks))
    sources = tuple(ContextSource(marker, block) for marker, block in enumerate(context.blocks, start=1))
    searched = result.trace.query
    with span("tables"):
        found = [hit.passage for hit in result.hits]
        computed = answer_from_tables(searched, filters, found, detect_language(searched))
    if computed is not None:
        sources = cite_rows(computed, sources)
    return Searched(sources, context, result.trace, profile_version=profile.version_id, computed=computed)
