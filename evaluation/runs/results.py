from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from evaluation.models import AnswerResult, EvaluationRun, QuestionResult, RunKind
from evaluation.payload_types import (
    AnswerFiguresPayload,
    JudgedMetricPayload,
    JudgementPayload,
    MeanPayload,
    MetricJudgementPayload,
    PercentilesPayload,
    RunSummaryPayload,
)
from evaluation.statistics import Interval, is_significant_loss, mean_interval, percentiles

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise

Result = QuestionResult | AnswerResult


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """A metric of a run. ``key`` is its name in summaries, URLs and gates; ``field`` is its field in a result."""

    key: str
    field: str
    label: str | StrPromise

    def read_value(self, result: Result) -> float | None:
        value: float | None = getattr(result, self.field)
        return value


# Pages show the measures in this order. A list of runs shows only the first measure.
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
        RunMeasure("groundedness", "groundedness", _("backed by its sources")),
        RunMeasure("refusal", "refusal", _("answered or refused rightly")),
    ),
}
NOTHING_TO_MEASURE: Mapping[str, StrPromise] = {
    RunKind.SEARCH: _("No question of the set has an expected passage: a search run has nothing to measure."),
    RunKind.ANSWERS: _(
        "No question of the set has an expected answer, or words that an answer must contain, or expects a refusal: an "
        "answers run has nothing to measure."
    ),
}
KIND_OF_MEASURE = {measure.key: RunKind(kind) for kind, measures in MEASURES.items() for measure in measures}
_RESULTS: Mapping[str, str] = {RunKind.SEARCH: "results", RunKind.ANSWERS: "answer_results"}


def find_run_measure(kind: str, key: str = "") -> RunMeasure:
    measures = MEASURES[kind]
    return next((measure for measure in measures if measure.key == key), measures[0])


def list_results(run: EvaluationRun) -> QuerySet[Any]:
    results: QuerySet[Any] = getattr(run, _RESULTS[run.kind]).all()
    return results


@dataclass(frozen=True, slots=True)
class QuestionPair:
    """The results of one question in two runs. ``difference`` is positive if the later run was better."""

    before: Result
    after: Result
    difference: float
    value_before: float
    value_after: float

    @property
    def text(self) -> str:
        return self.after.text


@dataclass(frozen=True, slots=True)
class RunComparison:
    """The comparison of a run with an earlier one, on the questions of both.

    - ``differences`` has an interval for each metric with values in both runs.
    - ``beyond_chance`` is 1 for a significant gain, -1 for a significant loss, otherwise 0.
    - ``better`` and ``worse``: the questions whose ``metric`` rose or fell; ``same`` is the number of the others.
    - ``caveats`` are sentences about differences between the runs other than the search profile.
    """

    run: EvaluationRun
    baseline: EvaluationRun
    metric: str
    differences: Mapping[str, Interval]
    beyond_chance: Mapping[str, int]
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


def summarise_results(kind: str, results: Sequence[Any]) -> RunSummaryPayload:
    """Return the means of the metrics with intervals, and percentiles of the milliseconds that a question took.

    Each mean has the number of its values as ``questions``. A metric without values is left out. Raises: ValueError if
    ``results`` is empty.
    """
    return {
        "questions": len(results),
        "metrics": {
            measure.key: _describe_mean(values)
            for measure in MEASURES[kind]
            if (values := [value for result in results if (value := measure.read_value(result)) is not None])
        },
        "latency_ms": _describe_percentiles([result.milliseconds for result in results]),
        **(_summarise_answers(results) if kind == RunKind.ANSWERS else {}),
    }


def _summarise_answers(results: Sequence[AnswerResult]) -> AnswerFiguresPayload:
    figures: AnswerFiguresPayload = {}
    waits = [one.first_token_milliseconds for one in results if one.first_token_milliseconds is not None]
    if waits:
        figures["first_token_ms"] = _describe_percentiles(waits)
    if any(one.prompt_tokens for one in results):
        costs = [one.cost for one in results if one.cost is not None]
        figures["usage"] = {
            "prompt_tokens": sum(one.prompt_tokens for one in results),
            "completion_tokens": sum(one.completion_tokens for one in results),
            "cost": round(sum(costs), 6) if costs else None,
        }
    if any(one.judged or one.judge_error for one in results):
        figures["judged"] = _summarize_judgements(results)
    return figures


def _summarize_judgements(results: Sequence[AnswerResult]) -> JudgementPayload:
    by_metric: dict[str, list[MetricJudgementPayload]] = {}
    for result in results:
        for metric, judged in result.judged.items():
            by_metric.setdefault(metric, []).append(judged)
    scores = {metric: [one["score"] for one in found if "score" in one] for metric, found in by_metric.items()}
    return {
        "judges": sorted({one.judge for one in results if one.judge}),
        "metrics": {
            metric: _describe_scores(scores[metric], len(found) - len(scores[metric]))
            for metric, found in by_metric.items()
        },
    }


def _describe_scores(scores: Sequence[float], errors: int) -> JudgedMetricPayload:
    return {**_describe_mean(scores), "errors": errors} if scores else {"errors": errors}


def read_confidence_interval(run: EvaluationRun, metric: str) -> Interval | None:
    stored = run.summary.get("metrics", {}).get(metric)
    return None if stored is None else Interval(stored["mean"], stored["low"], stored["high"])


def compare_runs(run: EvaluationRun, baseline: EvaluationRun, metric: str = "") -> RunComparison:
    """Compare the run with an earlier ``baseline`` of the same kind.

    Questions with the largest difference in ``metric`` come first. If ``metric`` is empty, the kind's first metric is
    used.
    """
    before = {result.question_id: result for result in list_results(baseline).exclude(question=None)}
    after = {result.question_id: result for result in list_results(run).exclude(question=None)}
    shared = [(before[question], after[question]) for question in after if question in before]
    chosen = find_run_measure(run.kind, metric)
    pairs = _make_question_pairs(shared, chosen)
    differences, beyond_chance = {}, {}
    for measure in MEASURES[run.kind]:
        if measured := pairs if measure is chosen else _make_question_pairs(shared, measure):
            interval = mean_interval([pair.difference for pair in measured])
            differences[measure.key] = interval
            beyond_chance[measure.key] = _find_change_sign(interval, [pair.difference for pair in measured])
    return RunComparison(
        run=run,
        baseline=baseline,
        metric=chosen.key,
        differences=differences,
        beyond_chance=beyond_chance,
        better=tuple(sorted((pair for pair in pairs if pair.difference > 0), key=lambda pair: -pair.difference)),
        worse=tuple(sorted((pair for pair in pairs if pair.difference < 0), key=lambda pair: pair.difference)),
        same=sum(pair.difference == 0 for pair in pairs),
        in_one_only=len(before.keys() ^ after.keys()),
        caveats=tuple(_find_caveats(run, baseline)),
    )


def _make_question_pairs(shared: Sequence[tuple[Result, Result]], measure: RunMeasure) -> list[QuestionPair]:
    return [
        QuestionPair(before, after, second - first, first, second)
        for before, after in shared
        if (first := measure.read_value(before)) is not None and (second := measure.read_value(after)) is not None
    ]


def _find_change_sign(interval: Interval, differences: Sequence[float]) -> int:
    gained = Interval(-interval.mean, -interval.high, -interval.low)
    return is_significant_loss(gained, [-difference for difference in differences]) - is_significant_loss(
        interval, differences
    )


def _find_caveats(run: EvaluationRun, baseline: EvaluationRun) -> list[str]:
    caveats = [
        _t("%(run)s is not to be relied on: %(reason)s") % {"run": one, "reason": one.unreliable_reason}
        for one in (baseline, run)
        if one.unreliable_reason
    ]
    if run.fingerprint != baseline.fingerprint:
        caveats.append(_t("The set was changed in between: only questions that both runs asked are compared."))
    if run.draft_id != baseline.draft_id:
        sides = {"before": baseline.draft or _t("in service"), "after": run.draft or _t("in service")}
        caveats.append(_t("The documents are not the same: before %(before)s, after %(after)s.") % sides)
    elif run.corpus_version != baseline.corpus_version:
        caveats.append(_t("The documents changed in between."))
    before, after = baseline.settings, run.settings
    unseen = [name for name in ("top_k", "context_budget_tokens") if before.get(name) != after.get(name)]
    if run.kind == RunKind.SEARCH and unseen:
        changed = ", ".join(f"{name} {before.get(name)} → {after.get(name)}" for name in unseen)
        caveats.append(_t("Both runs used the same search depth, so this setting made no difference: %s.") % changed)
    differing = {
        name
        for name in run.conditions.keys() | baseline.conditions.keys()
        if run.conditions.get(name) != baseline.conditions.get(name)
    }
    if differing & {"embedder", "hybrid"}:
        caveats.append(_t("The embedder or the switch for hybrid search changed in between."))
    if "generator" in differing:
        writers = {"before": baseline.conditions.get("generator"), "after": run.conditions.get("generator")}
        caveats.append(_t("The answers were written by %(before)s before, and by %(after)s after.") % writers)
    elif "prompt_version" in differing:
        caveats.append(_t("The prompt changed between the two runs."))
    return caveats


def _describe_mean(values: Sequence[float]) -> MeanPayload:
    found = mean_interval(values)
    return {"mean": found.mean, "low": found.low, "high": found.high, "questions": len(values)}


def _describe_percentiles(milliseconds: Sequence[float]) -> PercentilesPayload:
    found = percentiles(milliseconds)
    return {"p50": found.p50, "p95": found.p95}
