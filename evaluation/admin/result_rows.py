"""What the page of a run shows of its questions, for each kind of run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t

from chat.grounding.support.scoring import THRESHOLD
from evaluation.admin.run_presentation import explanation_address, ranks_text
from evaluation.models import AnswerResult, EvaluationRun, RunKind, Score
from evaluation.runs.agreement import is_right
from evaluation.runs.measures import Result, results_of
from evaluation.statistics.intervals import Interval
from retrieval.admin.base import badge


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A question with its result. ``ranks`` are those of search, ``verdict`` that on an answer."""

    result: Result
    explanation: str
    ranks: str = ""
    verdict: SafeString | str = ""
    judged: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """What the model judge says of a run by one metric: of how many answers, and where it failed."""

    metric: str
    interval: Interval | None
    questions: int
    errors: int


def worst_first(run: EvaluationRun, *, wrong_only: bool = False) -> QuerySet[Any]:
    """The run's results, the worst first; of an answers run, ``wrong_only`` leaves those that say something else."""
    results = results_of(run)
    if run.kind == RunKind.SEARCH:
        return results.order_by("ndcg", "reciprocal_rank", "pk")
    if wrong_only:
        results = results.filter(agreement__lt=THRESHOLD)
    return results.order_by(F("agreement").asc(nulls_last=True), F("cited").asc(nulls_last=True), "pk")


def result_rows(run: EvaluationRun, results: Iterable[Result], *, may_explain: bool) -> list[ResultRow]:
    return [
        ResultRow(
            result,
            explanation_address(result.text, run, run) if may_explain else "",
            **(
                {"verdict": verdict(result), "judged": _named(result.judged)}
                if isinstance(result, AnswerResult)
                else {"ranks": ranks_text(result.expected)}
            ),
        )
        for result in results
    ]


def verdict(result: AnswerResult) -> SafeString:
    """Right or wrong, and how, in a word."""
    if result.agreement is None:
        return badge("pending", _t("not measured"))
    if is_right(result.agreement):
        return badge("ready", _t("right"))
    if result.expects_refusal:
        return badge("failed", _t("wrong: answered"))
    return badge("failed", _t("wrong: refused") if result.refused else _t("wrong"))


def judged_rows(summary: Mapping[str, Any]) -> list[JudgedRow]:
    """The judge's figures in a run's summary; none when no judge was asked."""
    return [
        JudgedRow(
            name,
            Interval(found["mean"], found["low"], found["high"]) if "mean" in found else None,
            found.get("questions", 0),
            found["errors"],
        )
        for name, found in _named(summary.get("judged", {}).get("metrics", {}))
    ]


def _named(judged: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """What is told of each metric of the judge, by the metric's name for readers."""
    labels = dict(Score.Metric.choices)
    return tuple((str(labels.get(metric, metric)), found) for metric, found in judged.items())
