"""Search, from question to ranked passages: classify, plan, ask both retrievers at once, fuse, rerank, explain.

When a retriever fails or runs past its deadline the other one answers, and when the reranker does, the fused order
stands; the trace, the log and a metric say so.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.conf import settings
from django.db import DatabaseError
from django.utils.translation import gettext as _

from retrieval import conf
from retrieval.database import servers
from retrieval.database.replicas import read_from_replica
from retrieval.dense.active import lags
from retrieval.dense.encoding import encode_ahead
from retrieval.distribution import outage
from retrieval.exceptions import InvalidQuery, SearchUnavailable
from retrieval.lexical.statistics import any_await_vectors, learn, read_once
from retrieval.lexical.syntax import parse
from retrieval.observability.metrics import SEARCH_SECONDS
from retrieval.observability.tracing import annotate, span
from retrieval.ranking.adjustment import boost
from retrieval.ranking.classification import classify
from retrieval.ranking.fusion import RetrieverScores, fuse
from retrieval.ranking.plans import SearchPlan, plan_for
from retrieval.ranking.profile import ProfileSettings
from retrieval.rights.access import some_await_vectors
from retrieval.search.passages import load_metadata, load_passages
from retrieval.search.profiles import NamedProfile, active_profile, dense_only_unless_hybrid
from retrieval.search.reranking import reranked
from retrieval.search.retrievers import RetrieverResult, look_up, run_retrievers
from retrieval.search.rewording import spelt
from retrieval.search.trace import Hit, RerankTrace, SearchResult, SearchTrace
from retrieval.types import (
    Candidate,
    Classification,
    Ranking,
    Reformulation,
    Retriever,
    SearchFilters,
    SearchMethod,
    Turn,
)

logger = logging.getLogger(__name__)


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
        self.milliseconds[stage] = round((now - self._last) * 1000, 3)
        self._last = now

    def total(self) -> None:
        self.milliseconds["total"] = round((time.perf_counter() - self.started) * 1000, 3)


@span("search")
def search(
    question: str,
    filters: SearchFilters,
    *,
    method: SearchMethod | None = None,
    top_k: int | None = None,
    profile: NamedProfile | ProfileSettings | None = None,
    reranker: str | None = None,
    history: Sequence[Turn] = (),
) -> SearchResult:
    """The passages that answer ``question`` best, among those that ``filters`` let through, with the explanation.

    Where the profile says so, the question is reformulated first: filler words off, completed from ``history``, the
    conversation's earlier turns, oldest first, and what is certainly misspelt put right. Not so when a ``method`` is
    asked for: that is searched as published. ``profile`` replaces the one in force, and ``reranker`` names another than
    its own.
    Whatever is asked for, only vectors rank while RETRIEVAL_HYBRID_ENABLED is false; the trace names what did rank.
    A quoted phrase must occur in every passage returned, a word after a minus in none (see retrieval.lexical.syntax).
    The result is empty when nothing matches. Raises: InvalidQuery for an empty question, one of exclusions only, or an
    impossible number, SearchUnavailable when no retriever could answer.
    """
    watch = Stopwatch()
    searched = " ".join(question.replace("\x00", " ").split())
    if not searched:
        raise InvalidQuery(_("The question is empty."))
    used = active_profile() if profile is None else profile
    if isinstance(used, ProfileSettings):
        used = NamedProfile("", used)
    tuned = used.settings if method is None else used.settings.as_published(method)
    if reranker is not None:
        tuned = replace(tuned, reranker=reranker)
    reformulation = conf.reformulator().reformulate(searched, history) if tuned.reformulate else None
    named = replace(used, settings=tuned)
    return read_from_replica(
        lambda: _search(question, searched, reformulation, filters, named, top_k, watch), filters.collections
    )


@read_once()
def _search(
    question: str,
    searched: str,
    reformulation: Reformulation | None,
    filters: SearchFilters,
    profile: NamedProfile,
    top_k: int | None,
    watch: Stopwatch,
) -> SearchResult:
    """From one server, to be done again from another when that fails. Raises: as :func:`search`."""
    tuned = profile.settings
    _prepare(searched if reformulation is None else reformulation.query, filters, tuned)
    if reformulation is not None:
        if tuned.fuzzy:
            reformulation = spelt(reformulation, filters)
        searched = reformulation.query
        watch.lap("reformulate")
    wording = parse(searched).text
    classification, plan = _plan(searched, tuned, top_k)
    watch.lap("classify")

    results = run_retrievers(searched, filters, plan)
    watch.lap("legs")
    rankings = _rankings_of(results)
    known = look_up(results, plan)
    watch.lap("scores")
    ordered, rerank_trace = _order(wording, plan, rankings, known.scores, watch)
    candidates = _cut(ordered, plan, known.matched_terms)
    hits = _load_hits(candidates)
    watch.lap("load")
    for result in results:
        watch.milliseconds[result.trace.retriever.value] = result.trace.milliseconds
    watch.total()
    trace = SearchTrace(
        question=question,
        query=searched,
        query_class=classification.query_class,
        rule=classification.rule,
        # The name of the one retriever left, when the other did not answer.
        search_method=plan.method.value if len(rankings) > 1 else rankings[0].retriever.value,
        profile=profile.name,
        weights=plan.weights,
        depth=plan.depth,
        top_k=plan.top_k,
        rrf_k=plan.settings.rrf_k,
        score_threshold=plan.settings.score_threshold,
        retrievers=tuple(result.trace for result in results),
        rerank=rerank_trace,
        reformulation=reformulation,
        candidates=candidates,
        timings_ms=watch.milliseconds,
        is_partly_encoded=_is_partly_encoded(plan, filters),
        server=servers.current().told,
    )
    annotate(method=trace.search_method, profile=trace.profile, query_class=str(trace.query_class), hits=len(hits))
    SEARCH_SECONDS.labels(method=trace.search_method).observe(watch.milliseconds["total"] / 1000)
    return SearchResult(hits, trace)


def _plan(searched: str, tuned: ProfileSettings, top_k: int | None) -> tuple[Classification, SearchPlan]:
    """The class of the question, and how it is searched. Raises: InvalidQuery for an impossible number."""
    classification = classify(searched)
    try:
        plan = plan_for(
            tuned,
            classification.query_class,
            top_k=top_k,
            retriever_timeout_seconds=settings.RETRIEVAL_LEG_TIMEOUT_SECONDS,
        )
    except ValueError as error:
        raise InvalidQuery(str(error)) from error
    return classification, dense_only_unless_hybrid(plan)


def _rankings_of(results: Sequence[RetrieverResult]) -> list[Ranking]:
    """The rankings of those that answered, at least one. Raises: SearchUnavailable."""
    rankings = [result.ranking for result in results if result.ranking is not None]
    if not rankings:
        if any(result.lost_node for result in results):
            raise SearchUnavailable(outage.message())
        raise SearchUnavailable(_("The search cannot answer at the moment. Please try again in a minute."))
    return rankings


def _order(
    wording: str, plan: SearchPlan, rankings: Sequence[Ranking], scores: RetrieverScores, watch: Stopwatch
) -> tuple[list[Candidate], RerankTrace | None]:
    """The candidates, best first: fused, boosted by their metadata, and reranked."""
    tuned = plan.settings
    with span("search.fusion"):
        fused = fuse(plan, rankings, scores)
        if tuned.metadata_boosts:
            fused = boost(fused, tuned.metadata_boosts, load_metadata([candidate.chunk_id for candidate in fused]))
    watch.lap("fuse")
    rerank_trace = None
    if tuned.is_reranked and fused:
        with span("search.rerank", reranker=tuned.reranker):
            fused, rerank_trace = reranked(wording, fused, tuned)
            annotate(status=rerank_trace.status.value)
        watch.lap("rerank")
    return fused, rerank_trace


def _load_hits(candidates: Sequence[Candidate]) -> tuple[Hit, ...]:
    """The passages of the candidates that have a rank; one that was deleted since the retrievers saw it is left out."""
    kept = [candidate for candidate in candidates if candidate.rank is not None]
    passages = load_passages([candidate.chunk_id for candidate in kept])
    present = [candidate for candidate in kept if candidate.chunk_id in passages]
    return tuple(Hit(rank, passages[each.chunk_id], each) for rank, each in enumerate(present, start=1))


def _is_partly_encoded(plan: SearchPlan, filters: SearchFilters) -> bool:
    """Whether vectors were asked for, and some of the documents have none yet."""
    if plan.weights.of(Retriever.VECTOR) <= 0:
        return False
    return (any_await_vectors(filters.collections) and some_await_vectors(filters)) or lags(filters.collections)


def _prepare(question: str, filters: SearchFilters, tuned: ProfileSettings) -> None:
    """Have the words of the question looked up while it is encoded."""
    if tuned.method is not SearchMethod.LEXICAL:
        encode_ahead(parse(question).text)
    try:
        learn(question, filters.collections)
    except DatabaseError as error:
        # Each part that needs the words asks for them itself then, and tells when it gets no answer.
        logger.warning("The words of a question could not be looked up beforehand: %s", error)


def _cut(fused: Sequence[Candidate], plan: SearchPlan, matched: Mapping[int, tuple[str, ...]]) -> tuple[Candidate, ...]:
    """The candidates with their terms, the first ``top_k`` that reach the threshold ranked, the others dropped."""
    threshold = plan.settings.score_threshold
    candidates: list[Candidate] = []
    kept = 0
    for candidate in fused:
        dropped = candidate.dropped
        if not dropped and threshold is not None and candidate.score < threshold:
            dropped = f"score below the threshold of {threshold:g}"
        if not dropped and kept >= plan.top_k:
            dropped = f"not among the first {plan.top_k}"
        kept += not dropped
        terms = matched.get(candidate.chunk_id, ())
        rank = None if dropped else kept
        candidates.append(replace(candidate, rank=rank, dropped=dropped, matched_terms=terms))
    return tuple(candidates)
