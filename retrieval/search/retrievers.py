"""Both legs of a search at once, each held to its deadline; one that fails is announced, and the other one serves."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as DeadlinePassed
from dataclasses import dataclass, replace

from django.db import connection

from retrieval.dense.ranker import VectorRanker
from retrieval.exceptions import LegFailed
from retrieval.lexical.ranker import Bm25Ranker
from retrieval.metrics import LEG_FAILURES
from retrieval.protocols import Ranker
from retrieval.resilience import deadline
from retrieval.types import Leg, LegStatus, LegTrace, Ranking, SearchFilters, SearchPlan, StoredEncoding

logger = logging.getLogger(__name__)

RANKERS: dict[Leg, Callable[[str, SearchFilters, SearchPlan], Ranker]] = {
    Leg.LEXICAL: Bm25Ranker,
    Leg.VECTOR: VectorRanker,
}
# A statement is ended by PostgreSQL at the leg's deadline; what hangs elsewhere (an embedding server) is left behind.
DEADLINE_GRACE_SECONDS = 0.5

threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="leg")


@dataclass(frozen=True, slots=True)
class LegResult:
    trace: LegTrace
    ranking: Ranking | None = None
    ranker: Ranker | None = None


def rank_legs(query: str, filters: SearchFilters, plan: SearchPlan) -> list[LegResult]:
    """Both legs at once, each in a thread with a database connection of its own."""
    wanted = [leg for leg in Leg if plan.weights.of(leg) > 0]
    leg_seconds = deadline.seconds_left(plan.leg_timeout_seconds)
    ends_at = time.monotonic() + leg_seconds + DEADLINE_GRACE_SECONDS
    running: dict[Leg, Future[LegResult]] = {
        leg: deadline.submit(threads, _rank_leg, RANKERS[leg](query, filters, plan), plan.depth) for leg in wanted
    }
    results = []
    for leg in Leg:
        if leg not in running:
            results.append(LegResult(LegTrace(leg, LegStatus.OFF)))
            continue
        try:
            results.append(running[leg].result(timeout=max(0.0, ends_at - time.monotonic())))
        except DeadlinePassed:
            running[leg].cancel()
            late = LegTrace(
                leg,
                LegStatus.LATE,
                milliseconds=leg_seconds * 1000,
                error=f"No answer within {leg_seconds:g} s.",
            )
            results.append(LegResult(late))
    for result in results:
        if result.trace.status in (LegStatus.FAILED, LegStatus.LATE):
            LEG_FAILURES.labels(leg=result.trace.leg.value).inc()
            logger.warning("The %s leg did not answer: %s", result.trace.leg, result.trace.error)
    return results


def _rank_leg(ranker: Ranker, depth: int) -> LegResult:
    started = time.perf_counter()

    def trace(status: LegStatus, returned: int = 0, error: str = "") -> LegTrace:
        return LegTrace(ranker.leg, status, returned, (time.perf_counter() - started) * 1000, error)

    try:
        ranking = ranker.rank(depth)
    except LegFailed as error:
        return LegResult(trace(LegStatus.FAILED, error=str(error)))
    except Exception as error:
        # A leg must never take the other one down with it: whatever it raises is its own failure, and is announced.
        logger.exception("The %s leg failed unexpectedly.", ranker.leg)
        return LegResult(trace(LegStatus.FAILED, error=f"{type(error).__name__}: {error}"))
    finally:
        connection.close_if_unusable_or_obsolete()
    return LegResult(replace(trace(LegStatus.OK, len(ranking.chunks)), expansions=ranking.expansions), ranking, ranker)


def encodings_read(results: Sequence[LegResult]) -> dict[int, StoredEncoding]:
    """What the vector leg has read of the candidates on its way; empty when it did not answer."""
    rankers = (result.ranker for result in results)
    return next((ranker.encodings for ranker in rankers if isinstance(ranker, VectorRanker)), {})


def missing_scores(results: list[LegResult]) -> dict[Leg, dict[int, float]]:
    """For each leg, its scores of the candidates that only the other leg listed.

    A leg that cannot tell them keeps its list; its trace then has an ``error`` that says so.
    """
    listed = {
        result.ranking.leg: {chunk.chunk_id for chunk in result.ranking.chunks}
        for result in results
        if result.ranking is not None
    }
    everything = set().union(*listed.values())
    scores = {}
    for place, result in enumerate(results):
        if result.ranking is None or result.ranker is None:
            continue
        missing = sorted(everything - listed[result.ranking.leg])
        if not missing:
            continue
        try:
            scores[result.ranking.leg] = result.ranker.score(missing)
        except LegFailed as error:
            LEG_FAILURES.labels(leg=result.ranking.leg.value).inc()
            logger.warning("The %s leg's scores are incomplete: %s", result.ranking.leg, error)
            incomplete = f"Its scores of what the other leg found are unknown: {error}"
            results[place] = replace(result, trace=replace(result.trace, error=incomplete))
    return scores
