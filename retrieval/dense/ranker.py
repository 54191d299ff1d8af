"""Nearest neighbours by cosine.

Small sets are compared row by row, which is exact and fast; larger ones go through HNSW, with iterative scans so that a
filter that few rows pass still fills the list.

Source: Malkov and Yashunin, "Efficient and Robust Approximate Nearest Neighbor Search Using Hierarchical Navigable
Small World Graphs", IEEE TPAMI 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from django.db import connection
from django.db.models import Sum
from pgvector import HalfVector

from retrieval import conf
from retrieval.access import restrict
from retrieval.dense.active import active_embedder
from retrieval.dense.index import exact_distance, indexed_distance
from retrieval.exceptions import LegFailed, RetrievalError
from retrieval.models import ChunkEmbedding, CollectionStatistics, Embedder
from retrieval.timeouts import statement_timeout
from retrieval.types import Leg, RankedChunk, Ranking, SearchFilters

# Up to here every row is compared: exact, and no slower than the index.
EXACT_UP_TO = 10_000
# The index looks at this many candidates for each one asked for.
OVERSAMPLING = 5
LARGEST_EF_SEARCH = 1000


class VectorRanker:
    """The vector leg of one search."""

    leg = Leg.VECTOR

    def __init__(self, question: str, filters: SearchFilters, timeout_seconds: float) -> None:
        self._question = question
        self._filters = filters
        self._timeout_seconds = timeout_seconds

    def rank(self, depth: int) -> Ranking:
        """The ``depth`` passages nearest to the question; scores are cosines, from -1 to 1. Raises: LegFailed."""
        query = self._query
        with statement_timeout(self.leg, self._timeout_seconds):
            embedder = self._embedder
            rows = ChunkEmbedding.objects.filter(embedder_id=embedder.pk, collection__in=self._filters.collections)
            rows = restrict(rows, self._filters)
            if _passages(self._filters) <= EXACT_UP_TO:
                distance, order = exact_distance(query), ["distance", "chunk_id"]
            else:
                _tune_index_scan(depth)
                distance, order = indexed_distance(embedder, query), ["distance"]
            nearest = rows.annotate(distance=distance).order_by(*order).values_list("chunk_id", "distance")[:depth]
            found = sorted(((1.0 - float(distance), pk) for pk, distance in nearest), key=lambda row: (-row[0], row[1]))
        return Ranking(
            leg=self.leg,
            chunks=tuple(RankedChunk(pk, place, score) for place, (score, pk) in enumerate(found, start=1)),
        )

    def score(self, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Cosine of the passages given with the question. Raises: LegFailed."""
        query = self._query
        with statement_timeout(self.leg, self._timeout_seconds):
            rows = ChunkEmbedding.objects.filter(embedder_id=self._embedder.pk, chunk__in=chunk_ids)
            distances = rows.annotate(distance=exact_distance(query)).values_list("chunk_id", "distance")
            return {pk: 1.0 - float(distance) for pk, distance in distances}

    @cached_property
    def _embedder(self) -> Embedder:
        try:
            return active_embedder()
        except RetrievalError as error:
            raise LegFailed(str(error)) from error

    @cached_property
    def _query(self) -> HalfVector:
        try:
            return HalfVector(conf.embedder().embed_query(self._question))
        except RetrievalError as error:
            raise LegFailed(f"The question could not be embedded: {error}") from error


def _passages(filters: SearchFilters) -> int:
    total = CollectionStatistics.objects.filter(pk__in=filters.collections).aggregate(n=Sum("chunks"))["n"]
    return total or 0


def _tune_index_scan(depth: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true)",
            [str(min(LARGEST_EF_SEARCH, max(40, depth * OVERSAMPLING)))],
        )
