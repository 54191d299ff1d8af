"""BM25 over PostgreSQL's text search.

The GIN index on the search vector finds the passages that hold a lexeme of the question; the inner product of their
stored term weights with the question's inverse document frequencies is BM25, exactly.

Source: Robertson, Walker, Jones, Hancock-Beaulieu, Gatford, "Okapi at TREC-3", 1994.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from django.db import connection
from django.db.models import F, FloatField, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Least
from pgvector.django import MaxInnerProduct

from retrieval.access import restrict
from retrieval.lexical.query import LexicalQuery, build_queries
from retrieval.lexical.tsquery import MatchesTsQuery
from retrieval.models import Chunk
from retrieval.timeouts import statement_timeout
from retrieval.types import Leg, RankedChunk, Ranking, SearchFilters, SearchPlan


class Bm25Ranker:
    """The lexical leg of one search."""

    leg = Leg.LEXICAL

    def __init__(self, question: str, filters: SearchFilters, plan: SearchPlan) -> None:
        self._question = question
        self._filters = filters
        self._plan = plan

    def rank(self, depth: int) -> Ranking:
        """The best ``depth`` passages by BM25, with the lexemes each shares with the question, or with what was
        probably meant by words that the documents lack.

        Empty when the question holds no lexeme the documents know. Raises: LegFailed.
        """
        with statement_timeout(self.leg, self._plan.leg_timeout_seconds):
            rows = [row for query in self._queries for row in _best(query, self._filters, depth)]
            rows.sort(key=lambda row: (-row[1], row[0]))
            rows = rows[:depth]
            return Ranking(
                leg=self.leg,
                chunks=tuple(RankedChunk(pk, place, score) for place, (pk, score) in enumerate(rows, start=1)),
                matched_terms=matched_lexemes(self._queries, [pk for pk, _ in rows]),
                expansions=expanded_terms(self._queries),
            )

    def score(self, chunk_ids: Sequence[int]) -> dict[int, float]:
        """BM25 of the passages given, matching or not; 0 for one that shares nothing. Raises: LegFailed."""
        with statement_timeout(self.leg, self._plan.leg_timeout_seconds):
            scores = dict.fromkeys(chunk_ids, 0.0)
            for query in self._queries:
                scores.update(_scored(Chunk.objects.filter(pk__in=chunk_ids, collection__in=query.collections), query))
            return scores

    @cached_property
    def _queries(self) -> list[LexicalQuery]:
        return build_queries(self._question, self._filters.collections, fuzzy=self._plan.fuzzy)


def _best(query: LexicalQuery, filters: SearchFilters, depth: int) -> list[tuple[int, float]]:
    chunks = restrict(Chunk.objects.filter(collection__in=query.collections), filters)
    return list(_scored(chunks.filter(MatchesTsQuery("search_vector", query.tsquery)), query)[:depth])


def _scored(chunks: QuerySet[Chunk], query: LexicalQuery) -> QuerySet[Chunk, tuple[int, float]]:
    distance: Combinable = MaxInnerProduct("bm25", query.weights)
    for alternatives in query.alternatives:
        # Inner products are negative here: the least is the best.
        products = [MaxInnerProduct("bm25", weights) for weights in alternatives]
        distance = distance + (Least(*products) if len(products) > 1 else products[0])
    return (
        chunks.annotate(distance=distance, score=Value(0.0, FloatField()) - F("distance"))
        .order_by("distance", "pk")
        .values_list("pk", "score")
    )


def matched_lexemes(queries: Sequence[LexicalQuery], chunk_ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The question's lexemes in each passage, expansions included, the most telling first."""
    matched: dict[int, tuple[str, ...]] = {}
    if not chunk_ids:
        return matched
    for query in queries:
        worth = query.worth
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id, ARRAY(SELECT lexeme FROM unnest(search_vector) WHERE lexeme = ANY(%s)) "
                "FROM retrieval_chunk WHERE id = ANY(%s) AND collection_id = ANY(%s)",
                [list(worth), list(chunk_ids), list(query.collections)],
            )
            for pk, lexemes in cursor.fetchall():
                matched[pk] = tuple(sorted(lexemes, key=lambda lexeme: (-worth[lexeme], lexeme)))
    return matched


def expanded_terms(queries: Sequence[LexicalQuery]) -> dict[str, tuple[str, ...]]:
    """For each word that the documents lack, the lexemes that stood in for it, nearest first."""
    expanded: dict[str, tuple[str, ...]] = {}
    for query in queries:
        for typed, expansions in query.expansions.items():
            lexemes = [*expanded.get(typed, ()), *(expansion.lexeme for expansion in expansions)]
            expanded[typed] = tuple(dict.fromkeys(lexemes))
    return expanded
