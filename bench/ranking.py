from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings

from bench.beir import JudgedQuery, TestSet
from bench.reporting import Report
from evaluation.exceptions import EvaluationError, UntrustworthyMeasurement
from evaluation.runs.measurement import describe_search_errors, prepare_reranker
from evaluation.runs.queue import corpus_version
from evaluation.statistics import METRICS, TOP_K, Interval, Percentiles, mean_interval, percentiles
from retrieval.models import Collection
from retrieval.profile_settings import NO_RERANKER
from retrieval.search.pipeline import search
from retrieval.search.profiles.profiles import active_profile
from retrieval.search.trace import SearchResult, StageStatus
from retrieval.types import SearchFilters, SearchMethod

DEFAULT = "default"
METHODS = (*(method.value for method in SearchMethod), DEFAULT)


@dataclass(slots=True)
class SearchMethodResults:
    """The results of one search method on one test set: each metric's value per query, and milliseconds per stage."""

    scores: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in METRICS})
    milliseconds: dict[str, list[float]] = field(default_factory=dict)

    def compute_interval(self, metric: str) -> Interval:
        return mean_interval(self.scores[metric])

    def latency(self) -> dict[str, Percentiles]:
        stages = sorted(self.milliseconds, key=lambda stage: stage == "total")
        return {stage: percentiles(self.milliseconds[stage]) for stage in stages}


@dataclass(frozen=True, slots=True)
class RankingRun:
    name: str
    documents: int
    queries: int
    methods: Mapping[str, SearchMethodResults]


def list_rerankers() -> tuple[str, ...]:
    return (NO_RERANKER, *settings.RERANKERS)


def check_retrieval_depth() -> None:
    """Raise EvaluationError if the site's searches return fewer results than the metrics need."""
    if settings.RETRIEVAL_DEPTH < TOP_K:
        raise EvaluationError(f"recall@{TOP_K} needs a depth of at least {TOP_K}.")


def measure_rankings(
    test_set: TestSet,
    collection: Collection,
    methods: Sequence[str],
    *,
    reranker: str | None = None,
    limit: int | None,
    report: Report,
) -> RankingRun:
    """Search the first ``limit`` queries with each method and ``reranker``. Return the values of the metrics.

    If ``reranker`` is None, the method `default` uses the reranker of the active profile, and the other methods use
    none. The methods take turns at being first, because later ones profit from warm caches. Raises: the errors of
    `search()`; UntrustworthyMeasurement if a retriever or the reranker failed, or if the collection changed.
    """
    queries = test_set.queries[:limit]
    version = corpus_version(collection.pk)
    filters = SearchFilters(collections=(collection.pk,))
    runs = {name: SearchMethodResults() for name in methods}
    prepare_reranker(reranker or (active_profile().settings.reranker if DEFAULT in methods else NO_RERANKER))
    for name in methods:
        _search(queries[0], name, reranker, filters)
    for number, query in enumerate(queries):
        report(f"{test_set.name}: searching", number, len(queries))
        first = number % len(methods)
        for name in (*methods[first:], *methods[:first]):
            _record_scores(runs[name], query, _search(query, name, reranker, filters))
    if corpus_version(collection.pk) != version:
        raise UntrustworthyMeasurement(f"The collection {collection.slug} changed while it was searched: run it again.")
    return RankingRun(test_set.name, len(test_set.documents), len(queries), runs)


def ranked_documents(result: SearchResult) -> list[str]:
    return list(dict.fromkeys(hit.passage.source for hit in result.hits))


def _search(query: JudgedQuery, method: str, reranker: str | None, filters: SearchFilters) -> SearchResult:
    result = search(
        query.text, filters, method=None if method == DEFAULT else SearchMethod(method), top_k=TOP_K, reranker=reranker
    )
    if errors := describe_search_errors(result.trace):
        raise UntrustworthyMeasurement(f"Query {query.id} was not searched with all of {method}: {errors}")
    return result


def _record_scores(run: SearchMethodResults, query: JudgedQuery, result: SearchResult) -> None:
    ranking = ranked_documents(result)
    for name, metric in METRICS.items():
        run.scores[name].append(metric(ranking, query.grades))
    off = {retriever.retriever.value for retriever in result.trace.retrievers if retriever.status is StageStatus.OFF}
    for stage, milliseconds in result.trace.timings_ms.items():
        if stage not in off:
            run.milliseconds.setdefault(stage, []).append(milliseconds)
