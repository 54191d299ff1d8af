"""The report on an experiment: sizes, rates, intervals, warnings, and the verdict in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from django.utils.translation import gettext as _t

from evaluation.experiments import measures, outcomes
from evaluation.experiments.assignment import Arm
from evaluation.experiments.measures import ExperimentMeasure
from evaluation.experiments.outcomes import Visitors
from evaluation.experiments.statistics import balance, sequential
from evaluation.experiments.statistics.conclusion import Conclusion, at_fixed_horizon, by_sequential_test
from evaluation.experiments.statistics.planning import Plan
from evaluation.experiments.statistics.samples import ArmSummary, Effect
from evaluation.models import Experiment


class ExperimentVerdict(StrEnum):
    WAITING = "waiting"
    TREATMENT = "treatment"
    CONTROL = "control"
    NO_DIFFERENCE = "no difference"
    STOPPED_EARLY = "stopped early"
    UNSOUND = "unsound"


@dataclass(frozen=True, slots=True)
class ArmSize:
    """An arm's visitors; ``observed`` are those whose time of observation is not over, and who are not counted yet."""

    arm: Arm
    profile: str
    visitors: int
    observed: int
    answers: int
    with_outcome: int
    planned: int

    @property
    def without_outcome(self) -> int:
        return self.visitors - self.with_outcome


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """A metric in both arms. The effect is None before there are enough visitors for an interval."""

    measure: ExperimentMeasure
    control: ArmSummary
    treatment: ArmSummary
    effect: Effect | None


@dataclass(frozen=True, slots=True)
class Report:
    """``primary`` is None while the stopping rule keeps it from sight.

    ``outcomes_differ`` says that one arm's visitors have an outcome more often than the other's.
    """

    experiment: Experiment
    arms: tuple[ArmSize, ArmSize]
    conclusion: Conclusion
    primary: ArmComparison | None
    guards: tuple[ArmComparison, ...]
    is_imbalanced: bool
    outcomes_differ: bool
    off_profile: int
    verdict: ExperimentVerdict

    @property
    def winner(self) -> Arm | None:
        return (
            Arm(self.verdict.value)
            if self.verdict in (ExperimentVerdict.TREATMENT, ExperimentVerdict.CONTROL)
            else None
        )


def report(experiment: Experiment) -> Report:
    """The report of a started experiment, from the visitors until now, or until it ended."""
    visitors = outcomes.visitors_of(experiment)
    measure = measures.primary(experiment)
    conclusion = _conclude(experiment, visitors)
    arms = (_size(experiment, visitors, Arm.CONTROL), _size(experiment, visitors, Arm.TREATMENT))
    everybody = [size.visitors + size.observed for size in arms]
    is_imbalanced = balance.is_imbalanced(everybody[0], everybody[1], experiment.treatment_share)
    shown = None
    if conclusion.control is not None and conclusion.treatment is not None:
        shown = ArmComparison(measure, conclusion.control, conclusion.treatment, conclusion.effect)
    return Report(
        experiment=experiment,
        arms=arms,
        conclusion=conclusion,
        primary=shown,
        guards=tuple(_guards(experiment, visitors)),
        is_imbalanced=is_imbalanced,
        outcomes_differ=measure.is_partial and _differs(visitors, measure),
        off_profile=visitors.off_profile,
        verdict=ExperimentVerdict.UNSOUND if is_imbalanced else _verdict(experiment, conclusion),
    )


def sentence(summary: Report) -> str:
    """The verdict in words."""
    experiment = summary.experiment
    if summary.verdict is ExperimentVerdict.UNSOUND:
        return _t(
            "The arms do not have the sizes they should have: something loses visitors of one of them, and no "
            "difference can be trusted."
        )
    if summary.verdict is ExperimentVerdict.STOPPED_EARLY:
        return _t("Ended before its stopping rule allowed a conclusion: nothing can be said of the difference.")
    if summary.verdict is ExperimentVerdict.WAITING:
        return (
            _t("The primary metric is hidden until both arms have their planned visitors.")
            if experiment.is_fixed_horizon
            else _t("No decision yet: the difference may still be none.")
        )
    assert summary.primary is not None
    assert summary.primary.effect is not None
    effect, measure = summary.primary.effect, summary.primary.measure
    values = {
        "metric": measure.label,
        "difference": measure.difference(effect.difference),
        "low": measure.difference(effect.low),
        "high": measure.difference(effect.high),
    }
    if summary.verdict is ExperimentVerdict.TREATMENT:
        return _t("The treatment is better: %(metric)s %(difference)s (%(low)s to %(high)s).") % values
    if summary.verdict is ExperimentVerdict.CONTROL:
        return _t("The control is better: the treatment's %(metric)s %(difference)s (%(low)s to %(high)s).") % values
    return _t("No difference was found: %(metric)s %(difference)s (%(low)s to %(high)s).") % values


def _conclude(experiment: Experiment, visitors: Visitors) -> Conclusion:
    sample = visitors.sample(experiment.metric)
    plan = Plan(experiment.planned_control, experiment.planned_treatment)
    if experiment.is_fixed_horizon:
        return at_fixed_horizon(sample, plan, alpha=experiment.alpha)
    return by_sequential_test(sample, plan, alpha=experiment.alpha, tau=measures.effect_scale(experiment))


def _verdict(experiment: Experiment, conclusion: Conclusion) -> ExperimentVerdict:
    if not conclusion.is_final:
        is_over = experiment.state == Experiment.State.ENDED
        return ExperimentVerdict.STOPPED_EARLY if is_over else ExperimentVerdict.WAITING
    if conclusion.effect is None or not conclusion.is_decided:
        return ExperimentVerdict.NO_DIFFERENCE
    is_higher = conclusion.effect.difference > 0
    return (
        ExperimentVerdict.TREATMENT
        if is_higher == (experiment.better == Experiment.Better.HIGHER)
        else ExperimentVerdict.CONTROL
    )


def _guards(experiment: Experiment, visitors: Visitors) -> list[ArmComparison]:
    """The guard metrics with always-valid intervals; together they err no more often than the test does."""
    watched = measures.guards(experiment)
    compared = []
    for measure in watched:
        sample = visitors.sample(measure.outcome)
        path = sequential.follow(sample, alpha=experiment.alpha / len(watched), tau=measure.guard_tau)
        compared.append(ArmComparison(measure, sample.control, sample.treatment, path.last))
    return compared


def _differs(visitors: Visitors, measure: ExperimentMeasure) -> bool:
    presence = visitors.presence(measure.outcome)
    return sequential.follow(presence, alpha=balance.ALPHA, tau=measure.guard_tau).decided_at is not None


def _size(experiment: Experiment, visitors: Visitors, arm: Arm) -> ArmSize:
    is_treatment = arm is Arm.TREATMENT
    version = experiment.treatment if is_treatment else experiment.control
    sample = visitors.sample(experiment.metric)
    return ArmSize(
        arm=arm,
        profile=str(version) if version is not None else _t("the built-in profile"),
        visitors=visitors.count(arm),
        observed=visitors.observed[arm],
        answers=visitors.answers_of(arm),
        with_outcome=int(np.count_nonzero(sample.treated == is_treatment)),
        planned=experiment.planned_treatment if is_treatment else experiment.planned_control,
    )
