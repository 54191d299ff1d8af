"""The dashboard's charts, figures and lists, ready for its templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, PermissionsMixin
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.debugging.follow_up import DocumentBehind, documents_behind, trace_address
from chat.models import Answer, Feedback
from evaluation.charts import Caption, Markup, Series, line_chart, stacked_bars
from evaluation.dashboard.activity import Activity
from evaluation.dashboard.lists import UNANSWERED, UNHELPFUL, AnswerSelection
from evaluation.dashboard.scope import DashboardScope
from evaluation.dashboard.scores import EDGES, Distribution
from evaluation.figures import day_and_month, fixed, whole
from evaluation.models import Judgement, Score

Days = Mapping[date, Activity]

_METRICS = (
    (Score.Metric.GROUNDEDNESS, Judgement.Judge.OFFLINE),
    (Score.Metric.ANSWER_RELEVANCY, Judgement.Judge.OFFLINE),
    (Score.Metric.FAITHFULNESS, Judgement.Judge.MODEL),
    (Score.Metric.ANSWER_RELEVANCY, Judgement.Judge.MODEL),
)


def day_charts(scope: DashboardScope, days: Days) -> list[Markup]:
    """What happened on each day: questions, helpful rate, refusals, latency, degraded searches."""

    def links(**lookups: object) -> list[str]:
        return [scope.answer_list(day, **lookups) for day in days]

    return [
        _questions_chart(days, links()),
        _helpful_chart(days, links(feedback__helpful__exact=0)),
        _refusals_chart(days, links(refused__exact=1)),
        _latency_chart(days, links(status__exact=Answer.Status.COMPLETED.value)),
        _degraded_chart(days, links(degraded="yes")),
    ]


def _labels(days: Days) -> list[str]:
    return [day_and_month(day) for day in days]


def _questions_chart(days: Days, links: list[str]) -> Markup:
    caption = _caption(
        "questions",
        _("Questions a day"),
        _("Questions by the day on which their answer was finished, and by what came of them."),
        _("No question was answered in this period."),
    )
    outcomes = [
        Series(_("answered"), [day.answered for day in days.values()]),
        Series(_("no answer in the documents"), [day.refused for day in days.values()]),
        Series(_("failed"), [day.failed for day in days.values()]),
        Series(_("stopped"), [day.stopped for day in days.values()]),
    ]
    return stacked_bars(caption, _labels(days), outcomes, number=whole, links=links)


def _helpful_chart(days: Days, links: list[str]) -> Markup:
    caption = _caption(
        "helpful",
        _("Helpful rate"),
        _("Share of the answers marked as helpful among those that anybody marked; days without a mark are left out."),
        _("Nobody has said of an answer whether it helped, so the rate is unknown."),
    )
    rates = [Series(_("helpful"), [day.helpful_rate for day in days.values()])]
    return line_chart(caption, _labels(days), rates, most=1, number=percent, links=links)


def _refusals_chart(days: Days, links: list[str]) -> Markup:
    caption = _caption(
        "refusals",
        _("Refusals"),
        _("Share of the complete answers that say that the documents do not answer the question."),
        _("No answer was completed in this period, so the share is unknown."),
    )
    rates = [Series(_("refused"), [day.refusal_rate for day in days.values()])]
    return line_chart(caption, _labels(days), rates, most=1, number=percent, links=links)


def _latency_chart(days: Days, links: list[str]) -> Markup:
    caption = _caption(
        "latency",
        _("Time to an answer, in seconds"),
        _(
            "From the question to the last word: half of the day's answers (p50), or 95 of 100 (p95), took at most so "
            "long. Answers that repeat an earlier one, were stopped or failed are left out."
        ),
        _("No answer was written in this period, so the time is unknown."),
    )
    times = [
        Series(_("p95, last word"), [_seconds(day.p95_ms) for day in days.values()]),
        Series(_("p50, last word"), [_seconds(day.p50_ms) for day in days.values()]),
        Series(_("p50, first word"), [_seconds(day.first_token_p50_ms) for day in days.values()]),
    ]
    return line_chart(caption, _labels(days), times, number=decimal, links=links)


def _degraded_chart(days: Days, links: list[str]) -> Markup:
    caption = _caption(
        "degraded",
        _("Degraded searches"),
        _("Questions for which a part of the search, such as search by meaning, did not answer; the rest of it did."),
        _("Every part of the search answered every question of this period."),
    )
    searches = [Series(_("degraded"), [day.degraded for day in days.values()])]
    return stacked_bars(caption, _labels(days), searches, number=whole, links=links)


def score_chart(scope: DashboardScope, found: Distribution) -> Markup:
    """The distribution of one metric by one judge; each bin leads to its answers."""
    description = _(
        "%(measured)s answers by their score, from 0 (bad) to 1 (good), given in this period by: %(judge)s. "
        "Scores below %(threshold)s ask for a look."
    ) if found.threshold is not None else _(
        "%(measured)s answers by their score, from 0 (bad) to 1 (good), given in this period by: %(judge)s."
    )  # fmt: skip
    values = {
        "measured": whole(found.measured),
        "judge": found.judge.label,
        "threshold": decimal(found.threshold or 0.0),
    }
    caption = _caption(
        f"{found.metric.value.replace('_', '-')}-{found.judge.value}",
        f"{str(found.metric.label).capitalize()} ({found.judge.label})",
        description % values,
        _("Every judgement of this period failed: there are errors and no scores."),
        axis=_("score"),
    )
    links = [
        scope.address("answers", kind=found.metric.value, judge=found.judge.value, low=low, high=high)
        for low, high in pairwise(EDGES)
    ]
    bins = [f"{decimal(low)} – {decimal(high)}" for low, high in pairwise(EDGES)]
    low = sum(high <= found.threshold for high in EDGES[1:]) if found.threshold is not None else 0
    return stacked_bars(caption, bins, [Series(_("answers"), found.counts)], number=whole, links=links, low=low)


def percent(share: float | None) -> str:
    """The share in percent; a dash when it is unknown."""
    if share is None:
        return "–"
    value = round(100 * share, 1)
    return f"{fixed(value, 0 if value % 1 == 0 else 1)} %"


def decimal(value: float | None) -> str:
    """The number with at most one digit after the point, two below 1; a dash when it is unknown."""
    if value is None:
        return "–"
    rounded = round(value, 1 if value >= 1 else 2)
    digits = next(digits for digits in (0, 1, 2) if round(rounded, digits) == rounded)
    return fixed(rounded, digits)


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _caption(name: str, title: str, description: str, empty: str, axis: str = "") -> Caption:
    return Caption(
        name, title, description, axis=axis or _("Day"), as_table=_("The same numbers as a table"), empty=empty
    )


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure of the whole period, and the list behind it."""

    name: str
    figure: str
    note: str
    address: str


@dataclass(frozen=True, slots=True)
class AnswerListLink:
    """A list of bad answers that can be chosen."""

    name: str
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A bad answer, and where to correct it."""

    answer: Answer
    score: Score | None
    documents: list[DocumentBehind]

    @property
    def trace_address(self) -> str:
        return trace_address(self.answer)

    @property
    def feedback(self) -> Feedback | None:
        return getattr(self.answer, "feedback", None)


def answer_rows(answers: Sequence[Answer]) -> list[AnswerRow]:
    documents = documents_behind(answers)
    return [AnswerRow(answer, None, documents[answer.pk]) for answer in answers]


def score_rows(scores: Sequence[Score]) -> list[AnswerRow]:
    documents = documents_behind([score.judgement.answer for score in scores])
    return [AnswerRow(score.judgement.answer, score, documents[score.judgement.answer_id]) for score in scores]


def tiles(scope: DashboardScope, total: Activity) -> list[Tile]:
    """The figures of the whole period; an unknown figure is a dash, with the reason."""
    return [
        Tile(_("Questions"), whole(total.asked), _("%s failed") % whole(total.failed), scope.answer_list()),
        Tile(
            _("Helpful rate"),
            percent(total.helpful_rate),
            _("of %s answers that were marked") % whole(total.rated) if total.rated else _("nobody marked an answer"),
            scope.address("answers", kind=UNHELPFUL),
        ),
        Tile(
            _("Refusals"),
            percent(total.refusal_rate),
            _("%s without an answer in the documents") % whole(total.refused),
            scope.address("answers", kind=UNANSWERED),
        ),
        Tile(
            _("Time to an answer"),
            _("%s s") % decimal(total.p50_ms / 1000) if total.p50_ms is not None else "–",
            _("p50; p95 is %s s") % decimal(total.p95_ms / 1000)
            if total.p95_ms is not None
            else _("no answer was written"),
            scope.answer_list(status__exact=Answer.Status.COMPLETED.value),
        ),
        Tile(
            _("Degraded searches"),
            whole(total.degraded),
            _("%s of the questions") % percent(total.degraded_rate) if total.asked else _("no question was asked"),
            scope.answer_list(degraded="yes"),
        ),
    ]


def kinds(scope: DashboardScope, selection: AnswerSelection) -> list[AnswerListLink]:
    """The lists of bad answers there are; that of a bin of a chart counts as its metric's."""
    listed = [
        AnswerListLink(_("not helpful"), scope.address("answers", kind=UNHELPFUL), selection.kind == UNHELPFUL),
        AnswerListLink(
            _("no answer in the documents"), scope.address("answers", kind=UNANSWERED), selection.kind == UNANSWERED
        ),
    ]
    for metric, judge in _METRICS:
        listed.append(
            AnswerListLink(
                _("low %(metric)s (%(judge)s)") % {"metric": metric.label, "judge": judge.label},
                scope.address("answers", kind=metric.value, judge=judge.value),
                selection.kind == metric and selection.judge == judge,
            )
        )
    return listed


def heading(selection: AnswerSelection) -> str:
    """What the list of bad answers holds."""
    if selection.kind == UNHELPFUL:
        return _("Answers that did not help")
    if selection.kind == UNANSWERED:
        return _("Questions without an answer in the documents")
    values = {"metric": Score.Metric(selection.kind).label, "judge": Judgement.Judge(selection.judge).label}
    if selection.low is None or selection.high is None:
        return _("Answers with low %(metric)s (%(judge)s)") % values
    bounds = {"low": decimal(selection.low), "high": decimal(selection.high)}
    return _("Answers with %(metric)s from %(low)s to %(high)s (%(judge)s)") % {**values, **bounds}


def make_case_address(user: AbstractBaseUser | AnonymousUser) -> str:
    """Where an answer becomes a test case; empty for those who may not make one."""
    may = isinstance(user, PermissionsMixin) and user.has_perm("evaluation.add_evaluationquestion")
    return reverse("admin:evaluation_make_case") if may else ""
