"""Search, from question to ranked passages: classify, plan, rank both retrievers at once, fuse, rerank, explain.

When a retriever fails or runs past its deadline the other one answers, and when the reranker does, the fused order stands;
the trace, the log and a metric say so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.utils.translation import gettext as _

from retrieval import conf
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.lexical.syntax import parse
from retrieval.metrics import SEARCH_SECONDS
from retrieval.ranking.adjustment import boost, support
from retrieval.ranking.classification import classify
from retrieval.ranking.fusion import fuse
from retrieval.ranking.plans import plan_for
from retrieval.ranking.profile import ProfileSettings
from retrieval.search.passages import load_metadata, load_passages
from retrieval.search.profiles import NamedProfile, active_profile, dense_only_unless_hybrid
from retrieval.search.reranking import reranked
from retrieval.search.retrievers import encodings_read, missing_scores, run_retrievers
from retrieval.types import (
    CandidateTrace,
    FusedChunk,
    Hit,
    Passage,
    Ranking,
    SearchFilters,
    SearchMethod,
    SearchPlan,
    SearchResult,
    SearchTrace,
    Turn,
)


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


def search(
    question: str,
    filters: SearchFilters,
    *,
    method: SearchMethod | None = None,
    top_k: int | None = None,
    query: str | None = None,
    profile: NamedProfile | ProfileSettings | None = None,
    reranker: str | None = None,
    history: Sequence[Turn] = (),
) -> SearchResult:
    """The passages that answer ``question`` best, among those that ``filters`` let through, with the explanation.

    Where the profile says so, the question is reformulated first: filler words off, and completed from ``history``, the
    conversation's earlier turns, oldest first. Not so when ``query`` says what is searched, or when a ``method`` is
    asked for, as it is published. ``profile`` replaces the one in force, and ``reranker`` names another than its own.
    Whatever is asked for, only vectors rank while RETRIEVAL_HYBRID_ENABLED is false; the trace names what did rank.
    A quoted phrase must occur in every passage returned, a word after a minus in none (see retrieval.lexical.syntax).
    The result is empty when nothing matches. Raises: InvalidQuery for an empty question, one of exclusions only, or an
    impossible number, SearchUnavailable when no retriever could answer.
    """
    watch = Stopwatch()
    searched = " ".join((query or question).replace("\x00", " ").split())
    if not searched:
        raise InvalidQuery(_("The question is empty."))
    used = active_profile() if profile is None else profile
    if isinstance(used, ProfileSettings):
        used = NamedProfile("", used)
    reformulation = None
    if used.settings.reformulate and method is None and query is None:
        reformulation = conf.reformulator().reformulate(searched, history)
        searched = reformulation.query
        watch.lap("reformulate")
    wording = parse(searched).text
    classification = classify(searched)
    try:
        plan = plan_for(
            used.settings,
            classification.query_class,
            method=method,
            top_k=top_k,
            reranker=reranker,
            retriever_timeout_seconds=settings.RETRIEVAL_LEG_TIMEOUT_SECONDS,
        )
    except ValueError as error:
        raise InvalidQuery(str(error)) from error
    plan = dense_only_unless_hybrid(plan)
    watch.lap("classify")

    results = run_retrievers(searched, filters, plan)
    watch.lap("legs")
    rankings = [result.ranking for result in results if result.ranking is not None]
    if not rankings:
        raise SearchUnavailable(_("The search cannot answer at the moment. Please try again in a minute."))
    scores = missing_scores(results)
    encodings = encodings_read(results)
    watch.lap("scores")
    fused = fuse(plan, rankings, scores)
    if plan.metadata_boosts:
        fused = boost(fused, plan.metadata_boosts, load_metadata([chunk.chunk_id for chunk in fused]))
    watch.lap("fuse")
    rerank_trace = None
    if plan.rerank is not None and fused:
        retrievers = [ranking.retriever for ranking in rankings]
        fused, rerank_trace = reranked(wording, fused, plan.rerank, retrievers, encodings)
        watch.lap("rerank")
    # To what a reranker decides alone, nothing is added.
    if plan.neighbour_support and encodings and not any(chunk.rerank and chunk.rerank.alone for chunk in fused):
        fused = support(fused, plan.neighbour_support, {pk: stored.vector for pk, stored in encodings.items()})
        watch.lap("support")
    matched = {pk: terms for ranking in rankings for pk, terms in ranking.matched_terms.items()}
    kept, candidates = _select(fused, plan, matched)
    passages = load_passages([chunk.chunk_id for chunk in kept])
    hits = _hits(kept, passages, matched)
    watch.lap("load")
    for result in results:
        watch.milliseconds[result.trace.retriever.value] = result.trace.milliseconds
    watch.total()
    trace = SearchTrace(
        question=question,
        query=searched,
        classification=classification,
        plan=plan,
        search_method=_method_used(plan, rankings),
        retrievers=tuple(result.trace for result in results),
        candidates=candidates,
        timings_ms=watch.milliseconds,
        rerank=rerank_trace,
        profile=used.name,
        reformulation=reformulation,
    )
    SEARCH_SECONDS.labels(method=trace.search_method).observe(watch.milliseconds["total"] / 1000)
    return SearchResult(hits=hits, trace=trace)


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
                retrievers=chunk.retrievers,
                bonus=chunk.bonus,
                boosts=chunk.boosts,
                rerank=chunk.rerank,
                support=chunk.support,
                matched_terms=matched.get(chunk.chunk_id, ()),
                dropped=dropped,
            )
        )
    return kept, tuple(traces)


def _hits(
    kept: Sequence[FusedChunk], passages: Mapping[int, Passage], matched: Mapping[int, tuple[str, ...]]
) -> tuple[Hit, ...]:
    # A passage that was deleted since the retrievers saw it is left out.
    present = [chunk for chunk in kept if chunk.chunk_id in passages]
    return tuple(
        Hit(
            rank=rank,
            score=chunk.score,
            passage=passages[chunk.chunk_id],
            retrievers=chunk.retrievers,
            bonus=chunk.bonus,
            boosts=chunk.boosts,
            rerank=chunk.rerank,
            support=chunk.support,
            matched_terms=matched.get(chunk.chunk_id, ()),
        )
        for rank, chunk in enumerate(present, start=1)
    )


def _method_used(plan: SearchPlan, rankings: Sequence[Ranking]) -> str:
    """The method that really ranked: the name of the one retriever left, when the other did not answer."""
    return plan.method.value if len(rankings) > 1 else rankings[0].retriever.value
