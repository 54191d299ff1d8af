"""Both retrievers of a search at once, each held to its deadline; where one fails, the other one serves."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as DeadlinePassed
from dataclasses import dataclass, field, replace

from django.db import DatabaseError

from retrieval.database.servers import give_connections_back
from retrieval.dense.ranker import VectorRanker
from retrieval.exceptions import NodeLost, RetrieverFailed
from retrieval.lexical.ranker import Bm25Ranker
from retrieval.observability.metrics import RETRIEVER_FAILURES
from retrieval.observability.tracing import annotate, span
from retrieval.protocols import Ranker
from retrieval.ranking.plans import SearchPlan
from retrieval.resilience import deadline
from retrieval.resilience.timeouts import statements_within
from retrieval.search.stored import load_stored
from retrieval.search.trace import RetrieverTrace, StageStatus
from retrieval.types import Ranking, Retriever, SearchFilters

logger = logging.getLogger(__name__)

RANKERS: dict[Retriever, Callable[[str, SearchFilters, SearchPlan], Ranker]] = {
    Retriever.LEXICAL: Bm25Ranker,
    Retriever.VECTOR: VectorRanker,
}
# PostgreSQL ends a statement at the retriever's deadline; what hangs elsewhere (an embedding server) is left behind.
DEADLINE_GRACE_SECONDS = 0.5

threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="retriever")


@dataclass(frozen=True, slots=True)
class RetrieverResult:
    trace: RetrieverTrace
    ranking: Ranking | None = None
    ranker: Ranker | None = None
    lost_node: bool = False


def run_retrievers(query: str, filters: SearchFilters, plan: SearchPlan) -> list[RetrieverResult]:
    """Both retrievers at once, each in a thread with a database connection of its own."""
    wanted = [retriever for retriever in Retriever if plan.weights.of(retriever) > 0]
    seconds = deadline.seconds_left(plan.retriever_timeout_seconds)
    ends_at = time.monotonic() + seconds + DEADLINE_GRACE_SECONDS
    running: dict[Retriever, Future[RetrieverResult]] = {
        retriever: deadline.submit(threads, _run, RANKERS[retriever](query, filters, plan), plan.depth)
        for retriever in wanted
    }
    # Of a pool, those who wait for their retrievers must not hold what these need.
    give_connections_back()
    results = []
    for retriever in Retriever:
        if retriever not in running:
            results.append(RetrieverResult(RetrieverTrace(retriever, StageStatus.OFF)))
            continue
        try:
            results.append(running[retriever].result(timeout=max(0.0, ends_at - time.monotonic())))
        except DeadlinePassed:
            running[retriever].cancel()
            late = RetrieverTrace(
                retriever,
                StageStatus.LATE,
                milliseconds=round(seconds * 1000, 3),
                error=f"No answer within {seconds:g} s.",
            )
            results.append(RetrieverResult(late))
    for result in results:
        if result.trace.status.is_failure:
            RETRIEVER_FAILURES.labels(leg=result.trace.retriever.value).inc()
            logger.warning("The %s retriever did not answer: %s", result.trace.retriever, result.trace.error)
    return results


def _run(ranker: Ranker, depth: int) -> RetrieverResult:
    started = time.perf_counter()

    def trace(status: StageStatus, returned: int = 0, error: str = "") -> RetrieverTrace:
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        return RetrieverTrace(ranker.retriever, status, returned, milliseconds, error)

    try:
        with span(f"search.{ranker.retriever.value}", depth=depth):
            ranking = ranker.rank(depth)
            annotate(returned=len(ranking.chunks))
    except RetrieverFailed as error:
        return RetrieverResult(trace(StageStatus.FAILED, error=str(error)), lost_node=isinstance(error, NodeLost))
    except Exception as error:
        # A retriever must never take the other one down with it: whatever it raises is its own failure.
        logger.exception("The %s retriever failed unexpectedly.", ranker.retriever)
        return RetrieverResult(trace(StageStatus.FAILED, error=f"{type(error).__name__}: {error}"))
    finally:
        give_connections_back()
    return RetrieverResult(
        replace(trace(StageStatus.OK, len(ranking.chunks)), expansions=ranking.expansions), ranking, ranker
    )


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of all candidates beside the retrievers' lists: each retriever's ``scores`` of those that only the
    other one listed, and the ``matched_terms`` of those that it listed."""

    scores: Mapping[Retriever, Mapping[int, float]] = field(default_factory=dict)
    matched_terms: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


def look_up(results: list[RetrieverResult], plan: SearchPlan) -> Known:
    """One look at the index for all that ranking and the explanation need of the candidates.

    When it fails, the lists stand as they are: nothing is known, and the traces in ``results`` have an ``error`` that
    says so.
    """
    answered = {
        result.ranking.retriever: (result.ranking, result.ranker)
        for result in results
        if result.ranking is not None and result.ranker is not None
    }
    listed = {retriever: {chunk.chunk_id for chunk in ranking.chunks} for retriever, (ranking, _) in answered.items()}
    everything = set().union(*listed.values())
    if not everything:
        return Known()
    try:
        with statements_within(plan.retriever_timeout_seconds):
            stored = load_stored(
                sorted(everything),
                answered[Retriever.VECTOR][1].embedder_id if Retriever.VECTOR in answered else None,
                terms=Retriever.LEXICAL in answered,
            )
    except DatabaseError as error:
        for place, result in enumerate(results):
            if result.trace.retriever in answered:
                RETRIEVER_FAILURES.labels(leg=result.trace.retriever.value).inc()
                logger.warning("The %s retriever's scores are incomplete: %s", result.trace.retriever, error)
                incomplete = f"Its scores of what the other retriever found are unknown: {error}"
                results[place] = replace(result, trace=replace(result.trace, error=incomplete))
        return Known()
    scores, matched = {}, {}
    for retriever, (_, ranker) in answered.items():
        missing = everything - listed[retriever]
        if missing:
            scores[retriever] = {pk: score for pk, score in ranker.score(stored).items() if pk in missing}
        terms = ranker.matched_terms(stored)
        matched.update({pk: found for pk, found in terms.items() if pk in listed[retriever]})
    return Known(scores, matched)
