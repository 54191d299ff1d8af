"""BM25 over PostgreSQL's text search.

The GIN index on the search vector finds the passages that hold a lexeme of the question; the inner product of their
stored term weights with the question's inverse document frequencies is BM25, exactly.

Source: Robertson, Walker, Jones, Hancock-Beaulieu, Gatford, "Okapi at TREC-3", 1994.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from django.db import connection
from django.db.models import BooleanField, F, FloatField, Func, QuerySet, Value
from pgvector.django import MaxInnerProduct

from retrieval.access import restrict
from retrieval.lexical.query import LexicalQuery, build_queries
from retrieval.models import Chunk
from retrieval.timeouts import statement_timeout
from retrieval.types import Leg, RankedChunk, Ranking, SearchFilters


class MatchesTsQuery(Func):
    """Whether a search vector matches a tsquery in PostgreSQL's own notation, whose lexemes are not analysed again."""

    template = "%(expressions)s::tsquery"
    arg_joiner = " @@ "
    output_field = BooleanField()

    def __init__(self, search_vector: str, notation: str) -> None:
        super().__init__(F(search_vector), Value(notation))


class Bm25Ranker:
    """The lexical leg of one search."""

    leg = Leg.LEXICAL

    def __init__(self, question: str, filters: SearchFilters, timeout_seconds: float) -> None:
        self._question = question
        self._filters = filters
        self._timeout_seconds = timeout_seconds

    def rank(self, depth: int) -> Ranking:
        """The best ``depth`` passages by BM25, with the lexemes each shares with the question.

        Empty when the question holds no lexeme the documents know. Raises: LegFailed.
        """
        with statement_timeout(self.leg, self._timeout_seconds):
            rows = [row for query in self._queries for row in _best(query, self._filters, depth)]
            rows.sort(key=lambda row: (-row[1], row[0]))
            rows = rows[:depth]
            return Ranking(
                leg=self.leg,
                chunks=tuple(RankedChunk(pk, place, score) for place, (pk, score) in enumerate(rows, start=1)),
                matched_terms=matched_lexemes(self._queries, [pk for pk, _ in rows]),
            )

    def score(self, chunk_ids: Sequence[int]) -> dict[int, float]:
        """BM25 of the passages given, matching or not; 0 for one that shares nothing. Raises: LegFailed."""
        with statement_timeout(self.leg, self._timeout_seconds):
            scores = dict.fromkeys(chunk_ids, 0.0)
            for query in self._queries:
                scores.update(_scored(Chunk.objects.filter(pk__in=chunk_ids, collection__in=query.collections), query))
            return scores

    @cached_property
    def _queries(self) -> list[LexicalQuery]:
        return build_queries(self._question, self._filters.collections)


def _best(query: LexicalQuery, filters: SearchFilters, depth: int) -> list[tuple[int, float]]:
    chunks = restrict(Chunk.objects.filter(collection__in=query.collections), filters)
    return list(_scored(chunks.filter(MatchesTsQuery("search_vector", query.tsquery)), query)[:depth])


def _scored(chunks: QuerySet[Chunk], query: LexicalQuery) -> QuerySet[Chunk, tuple[int, float]]:
    distance = MaxInnerProduct("bm25", query.weights)
    return (
        chunks.annotate(score=Value(0.0, FloatField()) - distance).order_by(distance, "pk").values_list("pk", "score")
    )


def matched_lexemes(queries: list[LexicalQuery], chunk_ids: list[int]) -> dict[int, tuple[str, ...]]:
    """The question's lexemes in each passage, the most telling first."""
    if not chunk_ids or not queries:
        return {}
    idf = {lexeme: weight for query in queries for lexeme, weight in query.idf.items()}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, ARRAY(SELECT lexeme FROM unnest(search_vector) WHERE lexeme = ANY(%s)) "
            "FROM retrieval_chunk WHERE id = ANY(%s)",
            [list(idf), chunk_ids],
        )
        return {
            pk: tuple(sorted(lexemes, key=lambda lexeme: (-idf[lexeme], lexeme))) for pk, lexemes in cursor.fetchall()
        }
