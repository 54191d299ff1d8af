"""The dashboard's figures as charts: each with its definition in a sentence, and links to the answers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from itertools import pairwise

from django.utils.translation import gettext as _

from chat.models import Answer
from evaluation.charts import Caption, Markup, Series, histogram, line_chart, stacked_bars
from evaluation.dashboard.activity import Activity
from evaluation.dashboard.scope import Scope
from evaluation.dashboard.scores import EDGES, Distribution
from evaluation.figures import day_and_month, fixed, whole

Days = Mapping[date, Activity]


def day_charts(scope: Scope, days: Days) -> list[Markup]:
    """What happened on each day: questions, helpful rate, refusals, latency, degraded searches."""
    return [
        _questions(scope, days),
        _helpful(scope, days),
        _refusals(scope, days),
        _latency(scope, days),
        _degraded(scope, days),
    ]


def _questions(scope: Scope, days: Days) -> Markup:
    caption = _caption(
        "questions",
        _("Questions a day"),
        _("Questions by the day on which their answer was finished, and by what came of them."),
        _("No question was answered in this period."),
    )
    figures = list(days.values())
    series = [
        Series(_("answered"), [day.answered for day in figures]),
        Series(_("no answer in the documents"), [day.refused for day in figures]),
        Series(_("failed"), [day.failed for day in figures]),
        Series(_("stopped"), [day.stopped for day in figures]),
    ]
    return stacked_bars(caption, _labels(days), series, number=whole, links=[scope.answer_list(day) for day in days])


def _helpful(scope: Scope, days: Days) -> Markup:
    caption = _caption(
        "helpful",
        _("Helpful rate"),
        _("Share of the answers marked as helpful among those that anybody marked; days without a mark are left out."),
        _("Nobody has said of an answer whether it helped, so the rate is unknown."),
    )
    series = [Series(_("helpful"), [day.helpful_rate for day in days.values()])]
    links = [scope.answer_list(day, feedback__helpful__exact=0) for day in days]
    return line_chart(caption, _labels(days), series, most=1, number=percent, links=links)


def _refusals(scope: Scope, days: Days) -> Markup:
    caption = _caption(
        "refusals",
        _("Refusals"),
        _("Share of the complete answers that say that the documents do not answer the question."),
        _("No answer was completed in this period, so the share is unknown."),
    )
    series = [Series(_("refused"), [day.refusal_rate for day in days.values()], area=True)]
    links = [scope.answer_list(day, refused__exact=1) for day in days]
    return line_chart(caption, _labels(days), series, most=1, number=percent, links=links)


def _latency(scope: Scope, days: Days) -> Markup:
    caption = _caption(
        "latency",
        _("Time to an answer, in seconds"),
        _(
            "From the question to the last word: half of the day's answers (p50), or 95 of 100 (p95), took at most so "
            "long. Answers that repeat an earlier one, were stopped or failed are left out."
        ),
        _("No answer was written in this period, so the time is unknown."),
    )
    figures = list(days.values())
    series = [
        Series(_("p95, last word"), [_seconds(day.p95_ms) for day in figures]),
        Series(_("p50, last word"), [_seconds(day.p50_ms) for day in figures]),
        Series(_("p50, first word"), [_seconds(day.first_token_p50_ms) for day in figures]),
    ]
    links = [scope.answer_list(day, status__exact=Answer.Status.COMPLETED.value) for day in days]
    return line_chart(caption, _labels(days), series, number=decimal, links=links)


def _degraded(scope: Scope, days: Days) -> Markup:
    caption = _caption(
        "degraded",
        _("Degraded searches"),
        _("Questions for which a part of the search, such as search by meaning, did not answer; the rest of it did."),
        _("Every part of the search answered every question of this period."),
    )
    series = [Series(_("degraded"), [day.degraded for day in days.values()])]
    links = [scope.answer_list(day, degraded="yes") for day in days]
    return stacked_bars(caption, _labels(days), series, number=whole, links=links)


def score_chart(scope: Scope, found: Distribution) -> Markup:
    """The distribution of one metric by one judge; each bin leads to its answers."""
    description = _(
        "%(measured)s answers by their score, from 0 (bad) to 1 (good), given in this period by: %(judge)s. "
        "Scores below %(threshold)s ask for a look."
    ) if found.threshold is not None else _(
        "%(measured)s answers by their score, from 0 (bad) to 1 (good), given in this period by: %(judge)s."
    )  # fmt: skip
    said = {
        "measured": whole(found.measured),
        "judge": found.judge.label,
        "threshold": decimal(found.threshold or 0.0),
    }
    caption = _caption(
        f"{found.metric.value.replace('_', '-')}-{found.judge.value}",
        f"{str(found.metric.label).capitalize()} ({found.judge.label})",
        description % said,
        _("Every judgement of this period failed: there are errors and no scores."),
        axis=_("score"),
    )
    links = [
        scope.address("answers", kind=found.metric.value, judge=found.judge.value, low=low, high=high)
        for low, high in pairwise(EDGES)
    ]
    return histogram(
        caption,
        EDGES,
        found.counts,
        heading=_("answers"),
        number=decimal,
        count_number=whole,
        threshold=found.threshold,
        links=links,
    )


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


def _labels(days: Days) -> list[str]:
    return [day_and_month(day) for day in days]


def _caption(name: str, title: str, description: str, empty: str, axis: str = "") -> Caption:
    return Caption(
        name, title, description, axis=axis or _("Day"), as_table=_("The same numbers as a table"), empty=empty
    )
