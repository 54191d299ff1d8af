from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evaluation.embedder_trials.progress import TrialProgress
from evaluation.models import EvaluationQuestion, EvaluationRun, EvaluationSet, QuestionResult
from evaluation.payload_types import EmbedderComparisonPayload, SearchFiguresPayload
from evaluation.runs.measurement import RunInput, SearchMeasurement, prepare_reranker
from evaluation.sets.resolution import list_measured_questions
from evaluation.statistics import mean_interval
from retrieval.index import closeness, embedder_choice
from retrieval.profile_settings import ProfileSettings
from retrieval.search.profiles.profiles import NamedProfile, active_profile
from retrieval.search.ranking.plans import choose_weights
from retrieval.types import QueryClass, RetrieverWeights, SearchFilters, SearchMethod

if TYPE_CHECKING:
    from retrieval.protocols import TextEmbedder

# The weight of the vectors is changed to one of WEIGHTS only if this raises the mean nDCG by LEAST_GAIN.
WEIGHTS, LEAST_GAIN = (0.5, 0.7, 0.8), 0.01
# With fewer questions, no weight is chosen.
FEWEST_TO_CHOOSE = 20

_Asked = list[tuple[EvaluationSet, list[EvaluationQuestion]]]


def measure_embedders(
    candidate: TextEmbedder, progress: TrialProgress
) -> tuple[list[EmbedderComparisonPayload], float | None]:
    """Return the figures of each evaluation set with both embedders, and a weight for the new vectors (or None).

    With several sets, a last entry without a name is for all sets. A weight is fitted on half of the questions; the
    figures are then measured on the other half.
    """
    asked: _Asked = []
    for evaluation_set in EvaluationSet.objects.select_related("collection"):
        if questions := list_measured_questions(evaluation_set):
            asked.append((evaluation_set, questions))
    profile = active_profile()
    weight: float | None = None
    judging = asked
    total = sum(len(questions) for _, questions in asked)
    if (
        total >= FEWEST_TO_CHOOSE
        and candidate.name not in closeness.BUILT_IN
        and profile.settings.weights is None
        and profile.settings.method is SearchMethod.ZSCORE
    ):
        choosing = [(each, questions[::2]) for each, questions in asked]
        judging = [(each, questions[1::2]) for each, questions in asked if questions[1:]]
        with embedder_choice.use_embedder(candidate):
            weight = _choose_vector_weight(choosing, profile, progress)
    before = [_ask(each, questions, profile, progress) for each, questions in judging]
    with embedder_choice.use_embedder(candidate):
        tuned = profile if weight is None else _set_weight(profile, weight)
        after = [_ask(each, questions, tuned, progress) for each, questions in judging]
    names = [str(evaluation_set) for evaluation_set, _ in judging]
    if len(names) > 1:
        names.append("")
        before.append([result for results in before for result in results])
        after.append([result for results in after for result in results])
    return [_summarize(*row) for row in zip(names, before, after, strict=True)], weight


def _choose_vector_weight(choosing: _Asked, profile: NamedProfile, progress: TrialProgress) -> float:
    def mean_ndcg(weight: float) -> float:
        tuned = _set_weight(profile, weight)
        return statistics.fmean(
            result.ndcg for each, questions in choosing for result in _ask(each, questions, tuned, progress)
        )

    own = choose_weights(ProfileSettings(), QueryClass.DEFAULT).vector
    found = {weight: mean_ndcg(weight) for weight in (own, *WEIGHTS)}
    best = max(found, key=found.__getitem__)
    return best if found[best] >= found[own] + LEAST_GAIN else own


def _set_weight(profile: NamedProfile, weight: float) -> NamedProfile:
    return replace(profile, settings=replace(profile.settings, weights=RetrieverWeights(weight, 1 - weight)))


def _ask(
    evaluation_set: EvaluationSet,
    questions: Sequence[EvaluationQuestion],
    profile: NamedProfile,
    progress: TrialProgress,
) -> list[QuestionResult]:
    prepare_reranker(profile.settings.reranker)
    collection = evaluation_set.collection_id
    measurement = SearchMeasurement(
        RunInput(
            run=EvaluationRun(evaluation_set=evaluation_set, settings={}),
            profile=profile,
            collection_id=collection,
            filters=SearchFilters(collections=(collection,), readers=()),
            questions=questions,
        )
    )
    results = []
    for number, question in enumerate(questions, start=1):
        results.append(measurement.ask(question))
        progress("questions", number, len(questions))
    return results


def _summarize(
    name: str, before: Sequence[QuestionResult], after: Sequence[QuestionResult]
) -> EmbedderComparisonPayload:
    interval = mean_interval([second.ndcg - first.ndcg for first, second in zip(before, after, strict=True)])
    return {
        "set": name,
        "questions": len(after),
        "before": _compute_search_figures(before),
        "after": _compute_search_figures(after),
        "low": interval.low,
        "high": interval.high,
        "difference": interval.mean,
    }


def _compute_search_figures(results: Sequence[QuestionResult]) -> SearchFiguresPayload:
    return {
        "ndcg": statistics.fmean(each.ndcg for each in results),
        "first": statistics.fmean(math.isclose(each.reciprocal_rank, 1) for each in results),
        "milliseconds": statistics.median(each.milliseconds for each in results),
    }
