"""What a run found, as numbers with intervals, and how it differs from another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _t

from evaluation import metrics
from evaluation.metrics import Interval
from evaluation.models import EvaluationRun, QuestionResult

# The field of a QuestionResult that holds each metric, in the order in which metrics are shown.
FIELDS: Mapping[str, str] = {"ndcg@10": "ndcg", "hit@10": "hit", "recall@50": "recall", "mrr@10": "reciprocal_rank"}


@dataclass(frozen=True, slots=True)
class QuestionPair:
    """One question in two runs; ``difference`` is above 0 where the later one did better."""

    before: QuestionResult
    after: QuestionResult
    difference: float
    value_before: float
    value_after: float

    @property
    def text(self) -> str:
        return self.after.text


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run beside its baseline, on the questions that both asked.

    ``differences`` has an interval for each metric, and is empty without a question that both asked. ``caveats`` say
    what else than the profile differs between them.
    """

    run: EvaluationRun
    baseline: EvaluationRun
    metric: str
    differences: Mapping[str, Interval]
    better: tuple[QuestionPair, ...]
    worse: tuple[QuestionPair, ...]
    same: int
    in_one_only: int
    caveats: tuple[str, ...]

    @property
    def questions(self) -> int:
        return len(self.better) + len(self.worse) + self.same

    @property
    def difference(self) -> Interval | None:
        return self.differences.get(self.metric)


def summarise(results: Sequence[QuestionResult]) -> dict[str, Any]:
    """Each metric's mean with its interval, and the milliseconds of a search, as JSON. Raises: ValueError for none."""
    times = [result.milliseconds for result in results]
    return {
        "questions": len(results),
        "metrics": {
            metric: _as_json(metrics.mean_interval([getattr(result, field) for result in results]))
            for metric, field in FIELDS.items()
        },
        "latency_ms": {"p50": metrics.percentile(times, 50), "p95": metrics.percentile(times, 95)},
    }


def interval_of(run: EvaluationRun, metric: str) -> Interval | None:
    """The metric's mean over the run's questions with its interval; None while the run is not done."""
    stored = run.summary.get("metrics", {}).get(metric)
    return None if stored is None else Interval(stored["mean"], stored["low"], stored["high"])


def compare(run: EvaluationRun, baseline: EvaluationRun, metric: str = "ndcg@10") -> Comparison:
    """How the run differs from its baseline: better and worse questions by ``metric``, the largest difference first."""
    before = {result.question_id: result for result in baseline.results.exclude(question=None)}
    after = {result.question_id: result for result in run.results.exclude(question=None)}
    shared = [question for question in after if question in before]
    field = FIELDS[metric]
    pairs = [_pair(before[question], after[question], field) for question in shared]
    return Comparison(
        run=run,
        baseline=baseline,
        metric=metric,
        differences={
            name: metrics.paired_difference(
                [getattr(after[question], column) for question in shared],
                [getattr(before[question], column) for question in shared],
            )
            for name, column in FIELDS.items()
            if shared
        },
        better=tuple(sorted((pair for pair in pairs if pair.difference > 0), key=lambda pair: -pair.difference)),
        worse=tuple(sorted((pair for pair in pairs if pair.difference < 0), key=lambda pair: pair.difference)),
        same=sum(pair.difference == 0 for pair in pairs),
        in_one_only=len(before.keys() ^ after.keys()),
        caveats=tuple(_caveats(run, baseline)),
    )


def _pair(before: QuestionResult, after: QuestionResult, field: str) -> QuestionPair:
    first, second = getattr(before, field), getattr(after, field)
    return QuestionPair(before, after, second - first, first, second)


def _caveats(run: EvaluationRun, baseline: EvaluationRun) -> list[str]:
    caveats = [
        _t("%(run)s is not to be relied on: %(reason)s") % {"run": one, "reason": one.distrust}
        for one in (baseline, run)
        if one.distrust
    ]
    if run.fingerprint != baseline.fingerprint:
        caveats.append(_t("The set was changed in between: only questions that both runs asked are compared."))
    if run.corpus_version != baseline.corpus_version:
        caveats.append(_t("The documents changed in between."))
    if run.conditions != baseline.conditions:
        caveats.append(_t("The embedder or the switch for hybrid search changed in between."))
    return caveats


def _as_json(interval: Interval) -> dict[str, float]:
    return {"mean": interval.mean, "low": interval.low, "high": interval.high}
