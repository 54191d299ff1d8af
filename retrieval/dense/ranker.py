"""Nearest neighbours by cosine.

Small sets are compared row by row, which is exact and fast; larger ones go through HNSW, with iterative scans so that a
filter that few rows pass still fills the list.

Source: Malkov and Yashunin, "Efficient and Robust Approximate Nearest Neighbor Search Using Hierarchical Navigable
Small World Graphs", IEEE TPAMI 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet, Sum
from pgvector import HalfVector

from retrieval.access import restrict
from retrieval.dense.active import active_embedder
from retrieval.dense.encoding import encode_query
from retrieval.dense.index import exact_distance, indexed_distance
from retrieval.exceptions import RetrievalError, RetrieverFailed
from retrieval.lexical.constraints import constrain, constraints_for
from retrieval.lexical.syntax import ParsedQuestion, parse
from retrieval.models import ChunkEmbedding, CollectionStatistics, Embedder
from retrieval.ranking.plans import SearchPlan
from retrieval.resilience.timeouts import statement_timeout
from retrieval.types import RankedChunk, Ranking, Retriever, SearchFilters, StoredEncoding

# Up to here every row is compared: exact, and no slower than the index.
EXACT_UP_TO = 10_000
LARGEST_EF_SEARCH = 1000


class VectorRanker:
    """The vector retriever of one search. ``encodings`` holds what it has read of the chunks it ranked or scored."""

    retriever = Retriever.VECTOR

    def __init__(self, question: str, filters: SearchFilters, plan: SearchPlan) -> None:
        self._question = question
        self._filters = filters
        self._plan = plan
        self.encodings: dict[int, StoredEncoding] = {}

    def rank(self, depth: int) -> Ranking:
        """The ``depth`` passages nearest to the question; scores are cosines, from -1 to 1. Raises: RetrieverFailed."""
        query = self._query
        with statement_timeout(self.retriever, self._plan.retriever_timeout_seconds):
            embedder = self._embedder
            rows = ChunkEmbedding.objects.filter(embedder_id=embedder.pk, collection__in=self._filters.collections)
            constraints = constraints_for(self._parsed, self._filters.collections)
            rows = constrain(restrict(rows, self._filters), constraints)
            if _passages(self._filters) <= EXACT_UP_TO or ((self._filters or constraints) and _are_few(rows)):
                distance, order = exact_distance(query), ["distance", "chunk_id"]
            else:
                _tune_index_scan(depth * self._plan.settings.oversampling)
                distance, order = indexed_distance(embedder, query), ["distance"]
            found = self._read(rows.annotate(distance=distance).order_by(*order)[:depth])
        ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
        return Ranking(
            retriever=self.retriever,
            chunks=tuple(RankedChunk(pk, place, score) for place, (pk, score) in enumerate(ordered, start=1)),
        )

    def score(self, chunk_ids: Sequence[int]) -> dict[int, float]:
        """Cosine of the passages given with the question. Raises: RetrieverFailed."""
        query = self._query
        with statement_timeout(self.retriever, self._plan.retriever_timeout_seconds):
            rows = ChunkEmbedding.objects.filter(embedder_id=self._embedder.pk, chunk__in=chunk_ids)
            return self._read(rows.annotate(distance=exact_distance(query)))

    def _read(self, rows: QuerySet[ChunkEmbedding]) -> dict[int, float]:
        """The cosines of rows that have a ``distance``, by chunk id; their encodings are kept."""
        # Large values, read only for who will use them.
        signs = "token_signs" if self._plan.settings.is_reranked else "NULL"
        wanted = rows.values("chunk_id", "collection_id", "vector", "token_signs", *rows.query.annotations)
        try:
            chosen, parameters = wanted.query.sql_with_params()
        except EmptyResultSet:  # a filter that nothing can pass
            return {}
        with connection.cursor() as cursor:
            # Around the query, or the vectors would be converted before the nearest are chosen.
            cursor.execute(
                f"SELECT chunk_id, collection_id, distance, halfvec_send(vector), {signs} FROM ({chosen}) AS chosen",
                parameters,
            )
            read = cursor.fetchall()
        for pk, collection, _distance, sent, token_signs in read:
            self.encodings[pk] = StoredEncoding(
                # The binary form costs a twentieth of reading numbers from text: two 16-bit words of header, then
                # half-precision numbers, big-endian.
                vector=np.frombuffer(sent, ">f2", offset=4).astype(np.float32),
                token_signs=None if token_signs is None else bytes(token_signs),
                collection_id=collection,
            )
        return {pk: 1.0 - float(distance) for pk, _collection, distance, _sent, _signs in read}

    @cached_property
    def _embedder(self) -> Embedder:
        try:
            return active_embedder()
        except RetrievalError as error:
            raise RetrieverFailed(str(error)) from error

    @cached_property
    def _parsed(self) -> ParsedQuestion:
        return parse(self._question)

    @cached_property
    def _query(self) -> HalfVector:
        try:
            return HalfVector(encode_query(self._parsed.text).vector)
        except RetrievalError as error:
            raise RetrieverFailed(f"The question could not be embedded: {error}") from error


def _passages(filters: SearchFilters) -> int:
    total = CollectionStatistics.objects.filter(pk__in=filters.collections).aggregate(n=Sum("chunks"))["n"]
    return total or 0


def _are_few(rows: QuerySet[ChunkEmbedding]) -> bool:
    """Whether so few rows are left that comparing each is exact and fast, where the index would walk past most."""
    return rows[: EXACT_UP_TO + 1].count() <= EXACT_UP_TO


def _tune_index_scan(candidates: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            # The default of scanned tuples would starve a filter that few of a large table's rows pass.
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'strict_order', true), "
            "set_config('hnsw.max_scan_tuples', '1000000', true)",
            [str(min(LARGEST_EF_SEARCH, max(40, candidates)))],
        )
