"""Search, from question to ranked passages: classify, plan, rank both legs at once, fuse, rerank, explain.

When a leg fails or runs past its deadline the other one answers, and when the reranker does, the fused order stands;
the trace, the log and a metric say so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as DeadlinePassed
from dataclasses import dataclass, field

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from retrieval import conf
from retrieval.dense.ranker import VectorRanker
from retrieval.exceptions import InvalidQuery, LegFailed, RerankFailed, SearchUnavailable
from retrieval.lexical.ranker import Bm25Ranker
from retrieval.metrics import LEG_FAILURES, RERANK_FAILURES, SEARCH_SECONDS
from retrieval.passages import load_metadata, load_passages
from retrieval.profiles import active_profile
from retrieval.protocols import Ranker
from retrieval.ranking.adjustment import boost, rerank
from retrieval.ranking.classification import classify
from retrieval.ranking.fusion import fuse
from retrieval.ranking.plans import plan_for
from retrieval.ranking.profile import ProfileSettings
from retrieval.types import (
    CandidateTrace,
    FusedChunk,
    Hit,
    Leg,
    LegStatus,
    LegTrace,
    Passage,
    Ranking,
    RerankPlan,
    RerankTrace,
    SearchFilters,
    SearchMethod,
    SearchPlan,
    SearchResult,
    SearchTrace,
)

logger = logging.getLogger(__name__)

RANKERS: dict[Leg, Callable[[str, SearchFilters, float], Ranker]] = {
    Leg.LEXICAL: Bm25Ranker,
    Leg.VECTOR: VectorRanker,
}
# A statement is ended by PostgreSQL at the leg's deadline; what hangs elsewhere (an embedding server) is left behind.
DEADLINE_GRACE_SECONDS = 0.5

_legs = ThreadPoolExecutor(max_workers=16, thread_name_prefix="leg")


@dataclass(slots=True)
class Stopwatch:
    """Milliseconds of each named stage, in the order in which they ended."""

    started: float = field(default_factory=time.perf_counter)
    milliseconds: dict[str, float] = field(default_factory=dict)
    _last: float = 0.0

    def __post_init__(self) -> None:
        self._last = self.started

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.milliseconds[stage] = (now - self._last) * 1000
        self._last = now

    def total(self) -> None:
        self.milliseconds["total"] = (time.perf_counter() - self.started) * 1000


@dataclass(frozen=True, slots=True)
class LegResult:
    trace: LegTrace
    ranking: Ranking | None = None
    ranker: Ranker | None = None


def search(
    question: str,
    filters: SearchFilters,
    *,
    method: SearchMethod | None = None,
    top_k: int | None = None,
    query: str | None = None,
    profile: ProfileSettings | None = None,
    reranker: str | None = None,
) -> SearchResult:
    """The passages that answer ``question`` best, among those that ``filters`` let through, with the explanation.

    ``query`` is what is searched when it differs from what was asked (a follow-up question, completed). ``profile``
    replaces the one in force; ``method`` asks for a method as it is published, and ``reranker`` for one by its name.
    The result is empty when nothing matches. Raises: InvalidQuery for an empty question or an impossible number,
    SearchUnavailable when no leg could answer.
    """
    watch = Stopwatch()
    searched = " ".join((query or question).replace("\x00", " ").split())
    if not searched:
        raise InvalidQuery("The question is empty.")
    classification = classify(searched)
    try:
        plan = plan_for(
            profile or active_profile(),
            classification.query_class,
            method=method,
            top_k=top_k,
            reranker=reranker,
            leg_timeout_seconds=settings.RETRIEVAL_LEG_TIMEOUT_SECONDS,
        )
    except ValueError as error:
        raise InvalidQuery(str(error)) from error
    watch.lap("classify")

    results = _rank_legs(searched, filters, plan)
    watch.lap("legs")
    rankings = [result.ranking for result in results if result.ranking is not None]
    if not rankings:
        raise SearchUnavailable("The search cannot answer at the moment. Please try again in a minute.")
    scores = _missing_scores(results)
    watch.lap("scores")
    fused = fuse(plan, rankings, scores)
    if plan.metadata_boosts:
        fused = boost(fused, plan.metadata_boosts, load_metadata([chunk.chunk_id for chunk in fused]))
    watch.lap("fuse")
    reranked = None
    if plan.rerank is not None and fused:
        fused, reranked = _rerank(searched, fused, plan.rerank)
        watch.lap("rerank")
    matched = {pk: terms for ranking in rankings for pk, terms in ranking.matched_terms.items()}
    kept, candidates = _select(fused, plan, matched)
    passages = load_passages([chunk.chunk_id for chunk in kept])
    hits = _hits(kept, passages, matched)
    watch.lap("load")
    for result in results:
        watch.milliseconds[result.trace.leg.value] = result.trace.milliseconds
    watch.total()
    trace = SearchTrace(
        question=question,
        query=searched,
        classification=classification,
        plan=plan,
        search_method=_method_used(plan, rankings),
        legs=tuple(result.trace for result in results),
        candidates=candidates,
        timings_ms=watch.milliseconds,
        rerank=reranked,
    )
    SEARCH_SECONDS.labels(method=trace.search_method).observe(watch.milliseconds["total"] / 1000)
    return SearchResult(hits=hits, trace=trace)


def _rank_legs(query: str, filters: SearchFilters, plan: SearchPlan) -> list[LegResult]:
    """Both legs at once, each in a thread with a database connection of its own."""
    wanted = [leg for leg in Leg if plan.weights.of(leg) > 0]
    deadline = time.monotonic() + plan.leg_timeout_seconds + DEADLINE_GRACE_SECONDS
    running: dict[Leg, Future[LegResult]] = {
        leg: _legs.submit(_rank_leg, RANKERS[leg](query, filters, plan.leg_timeout_seconds), plan.depth)
        for leg in wanted
    }
    results = []
    for leg in Leg:
        if leg not in running:
            results.append(LegResult(LegTrace(leg, LegStatus.OFF)))
            continue
        try:
            results.append(running[leg].result(timeout=max(0.0, deadline - time.monotonic())))
        except DeadlinePassed:
            running[leg].cancel()
            late = LegTrace(
                leg,
                LegStatus.LATE,
                milliseconds=plan.leg_timeout_seconds * 1000,
                error=f"No answer within {plan.leg_timeout_seconds:g} s.",
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
    return LegResult(trace(LegStatus.OK, len(ranking.chunks)), ranking, ranker)


def _missing_scores(results: Sequence[LegResult]) -> dict[Leg, dict[int, float]]:
    """For each leg, its scores of the candidates that only the other leg listed."""
    listed = {
        result.ranking.leg: {chunk.chunk_id for chunk in result.ranking.chunks}
        for result in results
        if result.ranking is not None
    }
    everything = set().union(*listed.values())
    scores = {}
    for result in results:
        if result.ranking is None or result.ranker is None:
            continue
        missing = sorted(everything - listed[result.ranking.leg])
        if not missing:
            continue
        try:
            scores[result.ranking.leg] = result.ranker.score(missing)
        except LegFailed as error:
            logger.warning("The %s leg's scores are incomplete: %s", result.ranking.leg, error)
    return scores


def _rerank(query: str, fused: list[FusedChunk], plan: RerankPlan) -> tuple[list[FusedChunk], RerankTrace]:
    """The candidates reranked; as they were, with the reason, when the reranker fails or is late."""
    started = time.perf_counter()
    chunk_ids = [chunk.chunk_id for chunk in fused[: plan.depth]]

    def trace(status: LegStatus, judged: int = 0, error: str = "") -> RerankTrace:
        return RerankTrace(plan.reranker, status, judged, (time.perf_counter() - started) * 1000, error)

    try:
        running = _legs.submit(_judge, query, chunk_ids, plan)
        judged = running.result(timeout=plan.timeout_seconds + DEADLINE_GRACE_SECONDS)
        if not judged:
            raise RerankFailed("It judged none of the candidates.")
        return rerank(fused, plan, judged), trace(LegStatus.OK, len(judged))
    except DeadlinePassed:
        running.cancel()
        failed = trace(LegStatus.LATE, error=f"No answer within {plan.timeout_seconds:g} s.")
    except (RerankFailed, ImproperlyConfigured) as error:
        failed = trace(LegStatus.FAILED, error=str(error))
    except Exception as error:
        # The fused order is a good answer: nothing that a reranker raises may take it away, and all of it is announced.
        logger.exception("The reranker %s failed unexpectedly.", plan.reranker)
        failed = trace(LegStatus.FAILED, error=f"{type(error).__name__}: {error}")
    RERANK_FAILURES.labels(reranker=plan.reranker).inc()
    logger.warning("The reranker %s did not answer, the fused order stands: %s", plan.reranker, failed.error)
    return fused, failed


def _judge(query: str, chunk_ids: list[int], plan: RerankPlan) -> Mapping[int, float]:
    try:
        return conf.reranker(plan.reranker).score(query, chunk_ids, plan.timeout_seconds)
    finally:
        connection.close_if_unusable_or_obsolete()


def _select(
    fused: Sequence[FusedChunk], plan: SearchPlan, matched: Mapping[int, tuple[str, ...]]
) -> tuple[list[FusedChunk], tuple[CandidateTrace, ...]]:
    """The first ``top_k`` candidates that reach the threshold, and why each of the others was dropped."""
    kept: list[FusedChunk] = []
    traces = []
    for chunk in fused:
        dropped = chunk.dropped
        if not dropped and plan.score_threshold is not None and chunk.score < plan.score_threshold:
            dropped = f"score below the threshold of {plan.score_threshold:g}"
        if not dropped and len(kept) >= plan.top_k:
            dropped = f"not among the first {plan.top_k}"
        if not dropped:
            kept.append(chunk)
        traces.append(
            CandidateTrace(
                chunk_id=chunk.chunk_id,
                rank=None if dropped else len(kept),
                score=chunk.score,
                legs=chunk.legs,
                bonus=chunk.bonus,
                boosts=chunk.boosts,
                rerank=chunk.rerank,
                matched_terms=matched.get(chunk.chunk_id, ()),
                dropped=dropped,
            )
        )
    return kept, tuple(traces)


def _hits(
    kept: Sequence[FusedChunk], passages: Mapping[int, Passage], matched: Mapping[int, tuple[str, ...]]
) -> tuple[Hit, ...]:
    # A passage that was deleted since the legs saw it is left out.
    present = [chunk for chunk in kept if chunk.chunk_id in passages]
    return tuple(
        Hit(
            rank=rank,
            score=chunk.score,
            passage=passages[chunk.chunk_id],
            legs=chunk.legs,
            bonus=chunk.bonus,
            boosts=chunk.boosts,
            rerank=chunk.rerank,
            matched_terms=matched.get(chunk.chunk_id, ()),
        )
        for rank, chunk in enumerate(present, start=1)
    )


def _method_used(plan: SearchPlan, rankings: Sequence[Ranking]) -> str:
    """The method that really ranked: the name of the one leg left, when the other did not answer."""
    return plan.method.value if len(rankings) > 1 else rankings[0].leg.value
