"""The tables that the asker of one question may see, for a language model to ask them itself."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import DatabaseError, connection

from chat.answering.citations import quoted
from chat.answering.computed import cite_further_rows, render_computed, rows_behind
from chat.answering.threads import in_thread
from chat.exceptions import TablesUnavailable
from chat.types import Asked, ContextSource
from retrieval.infrastructure.timeouts import statements_within
from retrieval.tables.answering import answer_from_tables
from retrieval.tables.candidates import name_tables
from retrieval.text.language import detect_language
from retrieval.types import SearchFilters

logger = logging.getLogger(__name__)

# So much is told of the tables, before the model asks.
MOST_NAMED = 8
LONGEST_NAME = 200
# For each statement of a computation; a table of 100,000 rows takes about a second.
STATEMENT_SECONDS = 10.0
NAMING_SECONDS = 1.0


class TablesOfQuestion:
    """Implements ``AskableTables``. ``sources`` are those of the question's search, and behind them the rows that were
    asked for since; markers once given stay."""

    def __init__(
        self, names: Sequence[str], filters: SearchFilters, sources: Sequence[ContextSource], language: str
    ) -> None:
        self.names = names
        self.sources = tuple(sources)
        self._filters = filters
        self._language = language
        self._passages = [passage for source in sources for passage in source.block.passages]

    async def ask(self, question: str) -> Asked | None:
        return await in_thread(self._ask)(question)

    def _ask(self, question: str) -> Asked | None:
        try:
            with statements_within(STATEMENT_SECONDS):
                result = answer_from_tables(question, self._filters, self._passages, self._language)
                if result is None:
                    return None
                self.sources = cite_further_rows(result, self.sources)
        except DatabaseError as error:
            logger.warning("No table was computed for the language model: %s", error)
            raise TablesUnavailable("The tables cannot be asked now: answer without them.") from error
        finally:
            # This thread belongs to a pool: what it leaves open stays open.
            connection.close_if_unusable_or_obsolete()
        text = f"{quoted(result.caption)}\n{render_computed(result, self.sources, self._language)}"
        return Asked(text, rows_behind(result, self.sources), result.document_id)


def find_tables(question: str, filters: SearchFilters, sources: Sequence[ContextSource]) -> TablesOfQuestion | None:
    """The tables that the sources are from, or of whose documents they are and that the question is about; None without
    any, and when the database does not answer in time."""
    try:
        with statements_within(NAMING_SECONDS):
            tables = name_tables(filters, [source.block.best for source in sources], question, MOST_NAMED)
    except DatabaseError as error:
        logger.warning("The language model is offered no tables: %s", error)
        return None
    finally:
        connection.close_if_unusable_or_obsolete()
    if not tables:
        return None
    names = [f"{caption}: {', '.join(columns)}"[:LONGEST_NAME] for caption, columns in tables]
    return TablesOfQuestion(names, filters, sources, detect_language(question))
