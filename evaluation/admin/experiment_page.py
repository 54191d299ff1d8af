"""What the page of an experiment shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from django.utils import timezone
from django.utils.translation import gettext as _t

from evaluation.charts import Caption, IntervalBar, Markup, Series, interval_bars, line_chart
from evaluation.experiments import lifecycle, measures, outcomes
from evaluation.experiments.assignment import Arm
from evaluation.experiments.lifecycle import ExperimentRefused
from evaluation.experiments.report import ArmComparison, ExperimentVerdict, Report, report, sentence
from evaluation.experiments.statistics.balance import ALPHA
from evaluation.experiments.statistics.planning import Plan
from evaluation.experiments.statistics.samples import ArmSummary
from evaluation.figures import percent, significant, whole
from evaluation.models import Experiment
from retrieval.gates import Objection, objections_to

PRESENT = timedelta(days=28)
MOST_POINTS = 40
# A shorter path is a dot.
FEWEST_POINTS = 5
# Of a verdict, in the admin's colours, which are named for what happens to documents.
_COLOURS = {
    ExperimentVerdict.WAITING: "processing",
    ExperimentVerdict.TREATMENT: "ready",
    ExperimentVerdict.CONTROL: "ready",
    ExperimentVerdict.NO_DIFFERENCE: "pending",
    ExperimentVerdict.STOPPED_EARLY: "stopped",
    ExperimentVerdict.UNSOUND: "failed",
}


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric in both arms; ``verdict`` is a word for what the interval says, empty where it says nothing yet."""

    label: str
    control: str
    treatment: str
    difference: str
    interval: str
    verdict: str


@dataclass(frozen=True, slots=True)
class StartedExperimentPage:
    report: Report
    sentence: str
    colour: str
    rule: str
    primary: MetricRow | None
    guards: list[MetricRow]
    warnings: list[str]
    chart: Markup | None
    winner: str


@dataclass(frozen=True, slots=True)
class PresentRow:
    """A metric of the last weeks, for writing down what it is today."""

    label: str
    visitors: int
    mean: str
    deviation: str


@dataclass(frozen=True, slots=True)
class ExperimentDraftPage:
    """``problem`` says why the experiment cannot start as it is written down; empty when it can.

    ``objections`` are those of the gates to publishing the treatment, which do not keep it from being tried.
    """

    plan: Plan | None
    problem: str
    rule: str
    visitors_a_week: float
    weeks: float | None
    present: list[PresentRow]
    objections: tuple[Objection, ...]


def started_page(experiment: Experiment) -> StartedExperimentPage:
    summary = report(experiment)
    winner = summary.arms[1] if summary.winner is Arm.TREATMENT else summary.arms[0]
    return StartedExperimentPage(
        report=summary,
        sentence=sentence(summary),
        colour=_COLOURS[summary.verdict],
        rule=rule(experiment, Plan(experiment.planned_control, experiment.planned_treatment)),
        primary=_row(summary.primary) if summary.primary is not None else None,
        guards=[_row(one) for one in summary.guards],
        warnings=_warnings(summary),
        chart=_chart(summary),
        winner=winner.profile if summary.winner is not None else "",
    )


def draft_page(experiment: Experiment) -> ExperimentDraftPage:
    plan, problem = None, ""
    try:
        plan = lifecycle.plan(experiment)
    except ExperimentRefused as error:
        problem = str(error)
    present = outcomes.visitors_since(timezone.now() - PRESENT, experiment.observation_hours)
    a_week = len(present) * timedelta(days=7) / PRESENT
    needed = plan.control + plan.treatment if plan is not None else 0
    with_outcome = len(present.sample(experiment.metric)) * timedelta(days=7) / PRESENT * experiment.traffic_share
    return ExperimentDraftPage(
        plan=plan,
        problem=problem,
        rule=rule(experiment, plan) if plan is not None else "",
        visitors_a_week=a_week,
        weeks=needed / with_outcome if needed and with_outcome else None,
        present=[
            PresentRow(
                str(measure.label),
                arm.visitors,
                measure.value(arm.mean),
                significant(np.sqrt(arm.variance), 3) if arm.visitors > 1 else "–",
            )
            for measure in measures.MEASURES.values()
            for arm in [present.sample(measure.outcome).control]
        ],
        objections=objections_to(experiment.treatment),
    )


def rule(experiment: Experiment, plan: Plan) -> str:
    """The stopping rule in words, as it is written down before the start."""
    values = {
        "control": whole(plan.control),
        "treatment": whole(plan.treatment),
        "alpha": percent(experiment.alpha, 1),
        "power": percent(experiment.power, 0),
        "metric": measures.primary(experiment).label,
        "effect": measures.primary(experiment).difference(measures.effect_scale(experiment)).lstrip("+"),
    }
    if experiment.is_fixed_horizon:
        return _t(
            "There is one look at the primary metric, when %(control)s visitors of the control and %(treatment)s of "
            "the treatment have an outcome. Where there is no difference it finds one with a probability of at most "
            "%(alpha)s; one of %(effect)s (%(metric)s) it finds with a probability of %(power)s."
        ) % {**values}
    return _t(
        "The interval may be looked at after every visitor: the chance that it ever leaves out 0 where there is no "
        "difference is at most %(alpha)s. It ends at the first interval without 0, or when %(control)s visitors of the "
        "control and %(treatment)s of the treatment have an outcome; by then it has found a difference of %(effect)s "
        "(%(metric)s) with a probability of %(power)s or more."
    ) % {**values}


def _row(compared: ArmComparison) -> MetricRow:
    measure, effect = compared.measure, compared.effect
    verdict, interval = "", _t("too few visitors")
    if effect is not None and not effect.is_known:
        interval = _t("all alike so far")
    elif effect is not None:
        bounds = {"low": measure.difference(effect.low), "high": measure.difference(effect.high)}
        verdict, interval = (
            _t("differs") if effect.excludes_zero else _t("may be none"),
            _t("%(low)s to %(high)s") % bounds,
        )
    return MetricRow(
        label=str(measure.label),
        control=_mean(compared, compared.control),
        treatment=_mean(compared, compared.treatment),
        difference=measure.difference(effect.difference) if effect is not None else "–",
        interval=interval,
        verdict=verdict,
    )


def _mean(compared: ArmComparison, arm: ArmSummary) -> str:
    return f"{compared.measure.value(arm.mean)} ({whole(arm.visitors)})"


def _warnings(summary: Report) -> list[str]:
    warnings = []
    control, treatment = summary.arms
    if summary.is_imbalanced:
        everybody = control.visitors + control.observed + treatment.visitors + treatment.observed
        warnings.append(
            _t(
                "Sample ratio mismatch: %(seen)s of %(everybody)s visitors are in the treatment, where %(share)s were "
                "planned. Such a result comes up less than once in %(once)s sound experiments."
            )
            % {
                "seen": whole(treatment.visitors + treatment.observed),
                "everybody": whole(everybody),
                "share": percent(summary.experiment.treatment_share, 0),
                "once": whole(1 / ALPHA),
            }
        )
    if summary.outcomes_differ:
        warnings.append(
            _t(
                "One arm's visitors have an outcome more often than the other's: the metric compares different kinds "
                "of visitors."
            )
        )
    if summary.off_profile:
        warnings.append(
            _t("%d complete answers were not searched with the profile of their arm. They count in their arm.")
            % summary.off_profile
        )
    return warnings


def _chart(summary: Report) -> Markup | None:
    """The path of a sequential test, or the interval alone without a path; None while there is nothing to see."""
    path = summary.conclusion.path
    if summary.primary is None or summary.primary.effect is None or not summary.primary.effect.is_known:
        return None
    measure, effect = summary.primary.measure, summary.primary.effect
    description = _t(
        "Treatment minus control in %(unit)s, with the interval that holds the true difference with %(sure)s."
    )
    description %= {"unit": measure.unit, "sure": percent(1 - summary.experiment.alpha, 1)}
    caption = Caption(
        "difference",
        _t("Difference of the primary metric"),
        description,
        axis=_t("visitors"),
        as_table=_t("As a table"),
    )
    if path is None or len(path.visitors) < FEWEST_POINTS:
        bar = IntervalBar(_t("treatment minus control"), effect.difference, effect.low, effect.high)
        return interval_bars(caption, [bar], heading=str(measure.label), reference=0.0, number=measure.tick)
    points = np.unique(np.linspace(0, len(path.visitors) - 1, MOST_POINTS).round().astype(int))
    differences, reaches = path.differences[points], path.reaches[points]
    known = np.isfinite(reaches)
    series = Series(
        str(measure.label),
        differences.tolist(),
        low=[float(low) if sure else None for low, sure in zip(differences - reaches, known, strict=True)],
        high=[float(high) if sure else None for high, sure in zip(differences + reaches, known, strict=True)],
    )
    return line_chart(caption, [whole(at) for at in path.visitors[points]], [series], number=measure.tick)
