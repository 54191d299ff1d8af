"""Words that a reader may be told of: a word that stands only in documents narrowed to others is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from retrieval.database.servers import connection
from retrieval.lexical.tsquery import quote
from retrieval.models import Chunk, Document
from retrieval.rights.narrowing import seen_by
from retrieval.types import Reader


def chunks_seen(collections: Sequence[int], readers: Sequence[Reader]) -> QuerySet[Chunk]:
    """The passages of the collections that all of the readers may see."""
    chunks = Chunk.objects.filter(collection__in=collections)
    return chunks.filter(document__in=Document.objects.filter(seen_by(readers)).order_by()) if readers else chunks


def keep_seen(lexemes: Iterable[str], collections: Sequence[int], readers: Sequence[Reader]) -> set[str]:
    """Those of the lexemes that stand in a passage which all of the readers may see. One look at the index for each."""
    named = sorted(lexemes)
    if not readers or not named:
        return set(named)
    try:
        seen, parameters = chunks_seen(collections, readers).order_by().values("search_vector").query.sql_with_params()
    except EmptyResultSet:  # no collection
        return set()
    with connection.cursor() as cursor:
        # One look for each, and no subquery that refers to the lexeme outside: a distributed database cannot run that.
        look = f"(SELECT %s::text FROM ({seen}) AS seen(search_vector) WHERE search_vector @@ %s::tsquery LIMIT 1)"
        cursor.execute(
            " UNION ALL ".join([look] * len(named)),
            [value for lexeme in named for value in (lexeme, *parameters, quote(lexeme))],
        )
        return {lexeme for (lexeme,) in cursor.fetchall()}
