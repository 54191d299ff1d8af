"""Find the passages with the nearest vectors by cosine: exactly in small sets, by an HNSW index in larger ones.

Source: Malkov and Yashunin, "Efficient and Robust Approximate Nearest Neighbor Search Using Hierarchical Navigable
Small World Graphs", IEEE TPAMI 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from django.core.exceptions import EmptyResultSet
from pgvector import HalfVector

from core.database import fetch_rows
from core.exceptions import RagsiteError
from retrieval.exceptions import RetrieverFailed
from retrieval.index.active_embedder import encode_query, find_query_embedder
from retrieval.index.distribution import count_vector_indexes
from retrieval.index.term_statistics import count_passages_in
from retrieval.index.vector_index import build_exact_distance, build_indexed_distance, build_scan_settings
from retrieval.models import Embedder
from retrieval.protocols import Ranker
from retrieval.rights.search_filters import build_document_condition
from retrieval.search.ranking.lexical_query import build_chunk_condition
from retrieval.search.ranking.plans import SearchPlan
from retrieval.search.ranking.statement_timeout import statement_timeout
from retrieval.search.understanding.syntax import ParsedQuestion, parse_question
from retrieval.types import RankedChunk, Ranking, Retriever, SearchFilters, StoredChunk

# Comparing every row is exact, and up to this many rows as fast as the index.
EXACT_UP_TO = 10_000
# The oversampling is the number of vectors that are compared for each one returned. Up to this many passages, it is the
# profile's setting. Half of the setting is added each time the number of passages doubles.
WIDENED_FROM = 35_000


class VectorRanker(Ranker):
    retriever = Retriever.VECTOR

    def __init__(self, question: str, filters: SearchFilters, plan: SearchPlan) -> None:
        self._question = question
        self._filters = filters
        self._plan = plan

    def rank(self, depth: int) -> Ranking:
        """Return the ``depth`` nearest passages with cosines in [-1, 1]. Raises: RetrieverFailed."""
        query = self._query_vector.to_text()
        looked_at = (
            depth
            * self._plan.settings.oversampling
            * _compute_depth_factor(count_passages_in(self._filters.collections))
        )
        scan = build_scan_settings(round(looked_at))
        with statement_timeout(self.retriever, self._plan.retriever_timeout_seconds, scan):
            try:
                rows = self._find_nearest(query, depth)
            except EmptyResultSet:  # No passage can pass the filters.
                rows = []
        ordered = sorted(((1.0 - distance, pk) for pk, distance in rows), key=lambda pair: (-pair[0], pair[1]))
        return Ranking(
            retriever=self.retriever,
            chunks=tuple(RankedChunk(pk, place, score) for place, (score, pk) in enumerate(ordered, start=1)),
        )

    def _find_nearest(self, query: str, depth: int) -> list[tuple[int, float]]:
        embedder, collections = self._embedder, list(self._filters.collections)
        passing, values = build_document_condition(self._filters)
        meeting, demanded = build_chunk_condition(self._parsed_question, collections)
        source = (
            f"FROM retrieval_chunkembedding WHERE embedder_id = {embedder.pk:d} "
            f"AND collection_id = ANY(%s::bigint[]){passing}{meeting}"
        )
        parameters = [collections, *values, *demanded]
        if count_passages_in(collections) <= EXACT_UP_TO or (
            (passing or meeting) and _has_few_rows(source, parameters)
        ):
            distance, order = build_exact_distance(), "distance, chunk_id"
        else:
            distance, order = build_indexed_distance(embedder), "distance"
        return fetch_rows(
            f"SELECT chunk_id, {distance} AS distance {source} ORDER BY {order} LIMIT {depth:d}", [query, *parameters]
        )

    def score(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """Return the cosines of the chunks' vectors and the question, in half precision as in the index."""
        known = [(pk, chunk.vector) for pk, chunk in stored.items() if len(chunk.vector)]
        if not known:
            return {}
        query = self._query_vector.to_numpy().astype(np.float32)
        matrix = np.stack([vector for _, vector in known])
        lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
        cosines = matrix @ query / np.where(lengths > 0, lengths, 1)
        return dict(zip((pk for pk, _ in known), cosines.tolist(), strict=True))

    @property
    def embedder_id(self) -> int:
        return self._embedder.pk

    @cached_property
    def _embedder(self) -> Embedder:
        try:
            return find_query_embedder()
        except RagsiteError as error:
            raise RetrieverFailed(str(error)) from error

    @cached_property
    def _parsed_question(self) -> ParsedQuestion:
        return parse_question(self._question)

    @cached_property
    def _query_vector(self) -> HalfVector:
        try:
            return HalfVector(encode_query(self._parsed_question.text))
        except RagsiteError as error:
            raise RetrieverFailed(f"The question could not be embedded: {error}") from error


def _compute_depth_factor(passages: int) -> float:
    if passages <= WIDENED_FROM:
        return 1.0
    return 1 + max(0.0, math.log2(passages / count_vector_indexes() / WIDENED_FROM)) / 2


def _has_few_rows(source: str, parameters: list[object]) -> bool:
    ((number,),) = fetch_rows(
        f"SELECT count(*) FROM (SELECT 1 {source} LIMIT {EXACT_UP_TO + 1:d}) AS found", parameters
    )
    return bool(number <= EXACT_UP_TO)
