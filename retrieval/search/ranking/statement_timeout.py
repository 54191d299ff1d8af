from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import DatabaseError, OperationalError
from psycopg.errors import QueryCanceled

from core import deadline
from core.database import is_node_lost, limit_statements
from retrieval.exceptions import DatabaseNodeLost, RetrieverFailed
from retrieval.types import Retriever


@contextmanager
def statement_timeout(
    retriever: Retriever, seconds: float, database_settings: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Limit the time of database statements within this context.

    Raises: RetrieverFailed for any database error; DatabaseNodeLost if a node of the database does not answer.
    """
    seconds = deadline.seconds_left(seconds)
    if not seconds:
        raise RetrieverFailed(f"The {retriever} search was not begun: the question's time is over.")
    try:
        with limit_statements(seconds, database_settings or {}):
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise RetrieverFailed(f"The {retriever} search ran past its {seconds:g} s.") from error
        if is_node_lost(error):
            raise DatabaseNodeLost(f"The {retriever} search lost a node of the database: {error}") from error
        raise RetrieverFailed(f"The {retriever} search lost the database: {error}") from error
    except DatabaseError as error:
        raise RetrieverFailed(f"The {retriever} search failed in the database: {error}") from error
