"""Words that a reader may be told of: a word that stands only in documents narrowed to others is not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from retrieval.lexical.tsquery import quote
from retrieval.models import Chunk
from retrieval.models.narrowing import seen_by
from retrieval.types import Reader


def chunks_seen(collections: Sequence[int], readers: Sequence[Reader]) -> QuerySet[Chunk]:
    """The passages of the collections that all of the readers may see."""
    chunks = Chunk.objects.filter(collection__in=collections)
    return chunks.filter(seen_by(readers, "document__")) if readers else chunks


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
        cursor.execute(
            "SELECT lexeme FROM unnest(%s::text[], %s::text[]) AS named(lexeme, quoted) "
            f"WHERE EXISTS (SELECT FROM ({seen}) AS seen(search_vector) WHERE search_vector @@ quoted::tsquery)",
            [named, list(map(quote, named)), *parameters],
        )
        return {lexeme for (lexeme,) in cursor.fetchall()}
