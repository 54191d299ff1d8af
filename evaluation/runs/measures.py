"""The metrics of each kind of run: one table for results, charts, pages and gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from evaluation.models import AnswerResult, EvaluationRun, QuestionResult, RunKind

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

Result = QuestionResult | AnswerResult


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """A metric of a run. ``key`` stands in summaries, addresses and gates, ``field`` holds it in a result."""

    key: str
    field: str
    label: str | StrPromise

    def of(self, result: Result) -> float | None:
        value: float | None = getattr(result, self.field)
        return value


# In the order in which they are shown; the first is what a run of the kind is known by.
MEASURES: Mapping[str, tuple[RunMeasure, ...]] = {
    RunKind.SEARCH: (
        RunMeasure("ndcg@10", "ndcg", "nDCG@10"),
        RunMeasure("hit@10", "hit", "hit@10"),
        RunMeasure("recall@50", "recall", "recall@50"),
        RunMeasure("mrr@10", "reciprocal_rank", "MRR@10"),
    ),
    RunKind.ANSWERS: (
        RunMeasure("agreement", "agreement", _("agreement")),
        RunMeasure("expectations", "expectations", _("expectations met")),
        RunMeasure("cited", "cited", _("cited")),
        RunMeasure("groundedness", "groundedness", _("groundedness")),
        RunMeasure("refusal", "refusal", _("answered or refused rightly")),
    ),
}
NOTHING_TO_MEASURE: Mapping[str, StrPromise] = {
    RunKind.SEARCH: _("No question of the set has an expected passage: a search run has nothing to measure."),
    RunKind.ANSWERS: _(
        "No question of the set has an expected answer, or words that an answer must hold, or expects a refusal: an "
        "answers run has nothing to measure."
    ),
}
KIND_OF_MEASURE = {measure.key: RunKind(kind) for kind, measures in MEASURES.items() for measure in measures}
_RESULTS: Mapping[str, str] = {RunKind.SEARCH: "results", RunKind.ANSWERS: "answer_results"}


def measure_of(kind: str, key: str = "") -> RunMeasure:
    """The kind's metric of this key; the first one for any other key."""
    measures = MEASURES[kind]
    return next((measure for measure in measures if measure.key == key), measures[0])


def results_of(run: EvaluationRun) -> QuerySet[Any]:
    """The run's results, in the order of asking."""
    results: QuerySet[Any] = getattr(run, _RESULTS[run.kind]).all()
    return results
