from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from django.db import DatabaseError

from chat.answering.checking.citations import escape_markers
from chat.answering.computed_text import MOST_ROWS, render_result
from chat.exceptions import TablesUnavailable
from chat.types import AnswerDraft, ContextSource, TableReply
from core.database import limit_statements
from core.threads import in_thread
from core.tracing import annotate_span, span
from retrieval.search.assembly import assemble_context, build_result_blocks, build_unranked_blocks
from retrieval.search.index_state import read_index_state
from retrieval.search.passage_rows import load_neighbours, load_passages
from retrieval.search.pipeline import search
from retrieval.search.profiles.profiles import NamedProfile, choose_profile_for_visitor
from retrieval.search.shown_tables import bind_nearness_to_table, show_table
from retrieval.search.trace import SearchTrace
from retrieval.search.understanding.classification import HOW_TO
from retrieval.tables.answering import answer_from_only_table, answer_from_tables, find_matching_rows
from retrieval.tables.known_tables import LoadedTable
from retrieval.tables.lexicon import asks_for_several_rows
from retrieval.tables.names import tokenize
from retrieval.tables.results import ResultRow, TableResult
from retrieval.tables.stored_tables import find_candidate_tables, find_tables_of_chunks, list_table_names
from retrieval.text.language import detect_language
from retrieval.types import ContextBlock, Passage, SearchFilters, SearchMethod, TriedQuestions, Turn

logger = logging.getLogger(__name__)


def put_rows_before_sources(result: TableResult, sources: Sequence[ContextSource]) -> tuple[ContextSource, ...]:
    """Return the result's rows and then the other ``sources``, numbered again from 1."""
    passages = load_passages({row.chunk_id for row in result.rows[:MOST_ROWS]})
    rows = build_unranked_blocks(passages.values())
    cited = {passage.chunk_id for block in rows for passage in block.passages}
    others = [source.block for source in sources if source.block.best.chunk_id not in cited]
    return build_numbered_sources([*rows, *others])


def find_rows_named_in_question(
    draft: AnswerDraft, passage: Passage
) -> tuple[TableResult, tuple[ContextSource, ...]] | None:
    """Return the rows of the passage's table that the question names, and all sources in a new order: these rows first.

    Return None if there are no such rows, or if the database fails.
    """
    try:
        with limit_statements(STATEMENT_SECONDS):
            rows = find_matching_rows(draft.question, passage, bind_nearness_to_table, detect_language(draft.question))
            return None if rows is None else (rows, put_rows_before_sources(rows, draft.sources))
    except DatabaseError as error:
        logger.warning("Rows of a table were not looked up, one is quoted: %s", error)
        return None


def cite_further_rows(result: TableResult, sources: Sequence[ContextSource]) -> tuple[ContextSource, ...]:
    rows = [row for row in result.rows[:MOST_ROWS] if _find_source(row, result, sources) is None]
    further = build_unranked_blocks(load_passages({row.chunk_id for row in rows}).values())
    return (*sources, *(ContextSource(marker, block) for marker, block in enumerate(further, start=len(sources) + 1)))


def find_row_sources(result: TableResult, sources: Sequence[ContextSource]) -> tuple[ContextSource, ...]:
    found = [_find_source(row, result, sources) for row in result.rows[:MOST_ROWS]]
    return tuple({source.marker: source for source in found if source is not None}.values())


def render_computed_text(result: TableResult, sources: Sequence[ContextSource], language: str) -> str:
    def get_marker(row: ResultRow) -> str:
        source = _find_source(row, result, sources)
        return f"[{source.marker}]" if source is not None else ""

    return render_result(result, language, get_marker)


def _find_source(row: ResultRow, result: TableResult, sources: Sequence[ContextSource]) -> ContextSource | None:
    for source in sources:
        block = source.block
        if block.best.document_id == result.document_id and block.start <= row.start < block.end:
            return source
    return None


MOST_NAMED = 8
LONGEST_NAME = 200
# On a table of 100,000 rows, an SQL statement takes about a second.
STATEMENT_SECONDS = 10.0
NAMING_SECONDS = 1.0


class TablesOfQuestion:
    """The tables that a language model may query for one question. Rows that it finds are added to ``sources``."""

    def __init__(
        self, names: Sequence[str], filters: SearchFilters, sources: Sequence[ContextSource], language: str
    ) -> None:
        self.names = names
        self.sources = tuple(sources)
        self._filters = filters
        self._language = language
        self._passages = [passage for source in sources for passage in source.block.passages]

    async def compute_answer(self, question: str) -> TableReply | None:
        """Compute the answer to a question over the tables; None if the question is unclear.

        Raises: TablesUnavailable.
        """
        return await in_thread(self._ask, question)

    def _ask(self, question: str) -> TableReply | None:
        try:
            with limit_statements(STATEMENT_SECONDS):
                candidates = find_candidate_tables(question, self._filters, self._passages)
                result = answer_from_tables(question, candidates, bind_nearness_to_table, self._language)
                if result is None:
                    return None
                self.sources = cite_further_rows(result, self.sources)
        except DatabaseError as error:
            logger.warning("No table was computed for the language model: %s", error)
            raise TablesUnavailable("The tables cannot be asked now: answer without them.") from error
        text = f"{escape_markers(result.caption)}\n{render_computed_text(result, self.sources, self._language)}"
        return TableReply(text, find_row_sources(result, self.sources), result.document_id)


def find_tables(question: str, filters: SearchFilters, sources: Sequence[ContextSource]) -> TablesOfQuestion | None:
    """Return the tables in the documents of the sources; None if there are none or the look-up is too slow."""
    try:
        with limit_statements(NAMING_SECONDS):
            tables = list_table_names(filters, [source.block.best for source in sources], question, MOST_NAMED)
    except DatabaseError as error:
        logger.warning("The language model is offered no tables: %s", error)
        return None
    if not tables:
        return None
    names = [f"{caption}: {', '.join(columns)}"[:LONGEST_NAME] for caption, columns in tables]
    return TablesOfQuestion(names, filters, sources, detect_language(question))


def find_sources(
    question: str,
    filters: SearchFilters,
    method: SearchMethod | None,
    history: Sequence[Turn],
    subject: str,
    profile: NamedProfile | None,
    tried: TriedQuestions | None = None,
) -> AnswerDraft:
    """Search the documents and tables, and return a draft of the answer with the sources.

    If ``profile`` is None, the search profile for the visitor ``subject`` is used.
    For a trial, ``tried`` has questions by chunk id, as if curators had stored them with these passages.
    """
    profile = profile or choose_profile_for_visitor(subject)
    # The index's state is read before the search, so that the stored state is never too new.
    index = read_index_state(filters.collections)
    result = search(question, filters, method=method, profile=profile, history=history, tried=tried)
    with span("assembly"):
        context = assemble_context(
            result.hits,
            load_neighbours,
            budget_tokens=profile.settings.context_budget_tokens,
            expand=profile.settings.context_neighbours,
            blocks=profile.settings.context_blocks,
        )
        annotate_span(blocks=len(context.blocks))
    sources, results = (
        build_numbered_sources(context.blocks),
        build_numbered_sources(build_result_blocks(result.hits, context)),
    )
    searched = result.trace.query
    with span("tables"):
        found = [hit.passage for hit in result.hits]
        language = detect_language(searched)
        candidates = find_candidate_tables(searched, filters, found)
        # A table's cell cannot explain how to do something, so such questions get no computed answer.
        is_how_to = result.trace.rule == HOW_TO
        computed = None if is_how_to else answer_from_tables(searched, candidates, bind_nearness_to_table, language)
        if computed is None and not is_how_to:
            computed = _answer_from_further_table(searched, filters, result.trace, candidates, language)
        table = show_table(searched, candidates, found, language)
    if computed is not None:
        sources = put_rows_before_sources(computed, results)
    return AnswerDraft(
        question,
        sources,
        context,
        result.trace,
        results,
        profile_version=profile.version_id,
        computed=computed,
        table=table,
        index=index,
    )


def _answer_from_further_table(
    question: str, filters: SearchFilters, trace: SearchTrace, known: Sequence[LoadedTable], language: str
) -> TableResult | None:
    """Return the result of a table that is among the candidates of the search, but not among its hits.

    "The cheapest product" is in a row that need not be similar to the question.
    """
    if not asks_for_several_rows([token.norm for token in tokenize(question)]):
        return None
    asked = {table.pk for table in known}
    tables = find_tables_of_chunks(question, filters, [each.chunk_id for each in trace.candidates])
    further = [table for table in tables if table.pk not in asked]
    return answer_from_only_table(question, further, bind_nearness_to_table, language)


def build_numbered_sources(blocks: Iterable[ContextBlock]) -> tuple[ContextSource, ...]:
    return tuple(ContextSource(marker, block) for marker, block in enumerate(blocks, start=1))
