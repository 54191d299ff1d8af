"""Run the vector and the keyword retriever in parallel, each with a time limit."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.db import DatabaseError

from core import deadline
from core.database import limit_statements, release_connections
from core.exceptions import RagsiteError
from core.tracing import annotate_span, span
from retrieval.exceptions import DatabaseNodeLost, RetrieverFailed
from retrieval.index.active_embedder import find_query_embedder
from retrieval.metrics import RETRIEVER_FAILURES
from retrieval.protocols import Ranker
from retrieval.search.passage_rows import load_stored_chunks
from retrieval.search.ranking.lexical_ranker import Bm25Ranker
from retrieval.search.ranking.plans import SearchPlan
from retrieval.search.ranking.vector_ranker import VectorRanker
from retrieval.search.trace import RetrieverTrace, StageStatus
from retrieval.types import Ranking, Retriever, SearchFilters, StoredChunk

logger = logging.getLogger(__name__)

RANKERS: dict[Retriever, Callable[[str, SearchFilters, SearchPlan], Ranker]] = {
    Retriever.LEXICAL: Bm25Ranker,
    Retriever.VECTOR: VectorRanker,
}
# PostgreSQL stops a retriever's query at the time limit. If it does not, the thread is abandoned after this many more
# seconds.
DEADLINE_GRACE_SECONDS = 0.5

threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="retriever")


@dataclass(frozen=True, slots=True)
class RetrieverResult:
    """The outcome of one retriever. ``stored`` has the index data of its chunks; None if reading failed."""

    trace: RetrieverTrace
    ranking: Ranking | None = None
    ranker: Ranker | None = None
    lost_node: bool = False
    stored: Mapping[int, StoredChunk] | None = None


def run_retrievers(
    queries: Sequence[str], filters: SearchFilters, plan: SearchPlan
) -> tuple[list[RetrieverResult], ...]:
    """Return the results of both retrievers for each query."""
    seconds = deadline.seconds_left(plan.retriever_timeout_seconds)
    running = {
        (query, retriever): deadline.Stage(threads, partial(_run, RANKERS[retriever](query, filters, plan), plan))
        for query in queries
        for retriever in Retriever
        if plan.weights.get(retriever) > 0
    }
    # The retrievers' threads need connections, so this thread gives its own back to the pool.
    release_connections()
    return tuple(
        [_wait_for(retriever, running.get((query, retriever)), seconds) for retriever in Retriever] for query in queries
    )


def _wait_for(retriever: Retriever, running: deadline.Stage[RetrieverResult] | None, seconds: float) -> RetrieverResult:
    if running is None:
        return RetrieverResult(RetrieverTrace(retriever, StageStatus.OFF))
    try:
        result = running.result(seconds + DEADLINE_GRACE_SECONDS)
    except TimeoutError:
        waited, error = round(seconds * 1000, 3), f"No answer within {seconds:g} s."
        result = RetrieverResult(RetrieverTrace(retriever, StageStatus.LATE, milliseconds=waited, error=error))
    if result.trace.status.is_failure:
        RETRIEVER_FAILURES.labels(leg=result.trace.retriever.value).inc()
        logger.warning("The %s retriever did not answer: %s", result.trace.retriever, result.trace.error)
    return result


def _run(ranker: Ranker, plan: SearchPlan) -> RetrieverResult:
    started = time.perf_counter()

    def build_trace(status: StageStatus, **more: Any) -> RetrieverTrace:
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        return RetrieverTrace(ranker.retriever, status, milliseconds=milliseconds, **more)

    try:
        with span(f"search.{ranker.retriever.value}", depth=plan.depth):
            ranking = ranker.rank(plan.depth)
            annotate_span(returned=len(ranking.chunks))
        stored = _read_ranked_chunks(ranker, ranking, plan)
    except RetrieverFailed as error:
        return RetrieverResult(
            build_trace(StageStatus.FAILED, error=str(error)), lost_node=isinstance(error, DatabaseNodeLost)
        )
    except Exception as error:
        logger.exception("The %s retriever failed unexpectedly.", ranker.retriever)
        return RetrieverResult(build_trace(StageStatus.FAILED, error=f"{type(error).__name__}: {error}"))
    finally:
        release_connections()
    returned, unknown = len(ranking.chunks), ranking.unknown_words
    answered = build_trace(StageStatus.OK, returned=returned, expansions=ranking.expansions, unknown_words=unknown)
    return RetrieverResult(answered, ranking, ranker, stored=stored)


def _read_ranked_chunks(ranker: Ranker, ranking: Ranking, plan: SearchPlan) -> Mapping[int, StoredChunk] | None:
    if not ranking.chunks:
        return {}
    try:
        embedder_id = ranker.embedder_id
        if embedder_id is None and plan.weights.get(Retriever.VECTOR) > 0:
            embedder_id = find_query_embedder().pk
        with limit_statements(plan.retriever_timeout_seconds):
            return load_stored_chunks(
                [chunk.chunk_id for chunk in ranking.chunks],
                embedder_id,
                terms=plan.weights.get(Retriever.LEXICAL) > 0,
            )
    except (DatabaseError, RagsiteError):
        return None  # `load_candidate_data` reads the data again, and reports a failure.


@dataclass(frozen=True, slots=True)
class CandidateData:
    """Scores and other data of all candidates of one search, by chunk id.

    ``scores`` has each retriever's scores of candidates that it did not find itself, computed after the search.
    """

    scores: Mapping[Retriever, Mapping[int, float]] = field(default_factory=dict)
    matched_terms: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    word_shares: Mapping[int, float] = field(default_factory=dict)
    languages: Mapping[int, str] = field(default_factory=dict)
    given_questions: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def load_candidate_data(
    searches: Sequence[list[RetrieverResult]], plan: SearchPlan, others: Iterable[int] = ()
) -> list[CandidateData]:
    """Return scores and other data of each search's candidates, and of the chunks ``others``.

    If the database fails, the data are empty, and the traces in ``searches`` get an ``error``.
    """
    answered = [result for results in searches for result in results if result.ranking is not None]
    everything = {chunk.chunk_id for result in answered if result.ranking for chunk in result.ranking.chunks}
    everything.update(others)
    if not everything:
        return [CandidateData() for _ in searches]
    rankers = {result.trace.retriever: result.ranker for result in answered}
    vector_ranker = rankers.get(Retriever.VECTOR)
    known, read = _merge_stored_chunks(answered)
    unread = everything - read
    try:
        if unread:
            with limit_statements(plan.retriever_timeout_seconds):
                known |= load_stored_chunks(
                    sorted(unread),
                    vector_ranker.embedder_id if vector_ranker is not None else None,
                    terms=Retriever.LEXICAL in rankers,
                )
    except DatabaseError as error:
        for results in searches:
            for place, result in enumerate(results):
                if result.ranking is not None:
                    RETRIEVER_FAILURES.labels(leg=result.trace.retriever.value).inc()
                    logger.warning("The %s retriever's scores are incomplete: %s", result.trace.retriever, error)
                    incomplete = f"Its scores of what it did not list are unknown: {error}"
                    results[place] = replace(result, trace=replace(result.trace, error=incomplete))
        return [CandidateData() for _ in searches]
    # Sums of floats depend on the order of addition, so chunks are sorted by id.
    stored = {pk: known[pk] for pk in sorted(known)}
    return [_collect_candidate_data(results, stored) for results in searches]


def _merge_stored_chunks(answered: Iterable[RetrieverResult]) -> tuple[dict[int, StoredChunk], set[int]]:
    known: dict[int, StoredChunk] = {}
    read: set[int] = set()
    for result in answered:
        if result.ranking is not None and result.stored is not None:
            known.update(result.stored)
            read.update(chunk.chunk_id for chunk in result.ranking.chunks)
    return known, read


def _collect_candidate_data(results: Sequence[RetrieverResult], stored: Mapping[int, StoredChunk]) -> CandidateData:
    scores: dict[Retriever, dict[int, float]] = {}
    matched: dict[int, tuple[str, ...]] = {}
    shares: dict[int, float] = {}
    for result in results:
        if result.ranking is None or result.ranker is None:
            continue
        listed = {chunk.chunk_id for chunk in result.ranking.chunks}
        if stored.keys() - listed:
            scored = result.ranker.score(stored)
            scores[result.ranking.retriever] = {pk: score for pk, score in scored.items() if pk not in listed}
        terms = result.ranker.find_matched_terms(stored)
        matched.update({pk: found for pk, found in terms.items() if pk in listed})
        shares.update(result.ranker.compute_word_shares(stored))
    return CandidateData(
        scores,
        matched,
        shares,
        {pk: chunk.language for pk, chunk in stored.items()},
        {pk: chunk.given_questions for pk, chunk in stored.items() if chunk.given_questions},
    )
