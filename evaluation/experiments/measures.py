"""The metrics of an experiment: their scale, and how their numbers are written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from evaluation.experiments import outcomes
from evaluation.figures import fixed, percent, significant, whole
from evaluation.models import Experiment


@dataclass(frozen=True, slots=True)
class ExperimentMeasure:
    """A metric. ``guard_tau`` is the effect for which it is watched while another one is the primary metric."""

    outcome: str
    label: str | Promise
    guard_tau: float = 0.0

    @property
    def is_rate(self) -> bool:
        return self.outcome in (outcomes.HELPFUL, outcomes.REFUSAL, outcomes.FAILURE)

    @property
    def is_partial(self) -> bool:
        """Whether some visitors never have it, which may be the treatment's doing."""
        return self.outcome in (outcomes.HELPFUL, outcomes.GROUNDEDNESS)

    def value(self, number: float) -> str:
        """A mean over visitors as text; a dash for NaN. Latencies are stored as logarithms."""
        if math.isnan(number):
            return "–"
        if self.is_rate:
            return percent(number, 1)
        if self.outcome == outcomes.LATENCY:
            return f"{whole(math.exp(number))} ms"
        return f"{whole(number)} ms" if self.outcome == outcomes.LATENCY_MEAN else fixed(number, 3)

    def difference(self, number: float) -> str:
        """A difference as text: in percentage points, per cent, milliseconds, or points of the score."""
        if not math.isfinite(number):
            return "–∞" if number < 0 else "∞"
        if self.is_rate:
            return f"{fixed(100 * number, 1, signed=True)} pp"
        if self.outcome == outcomes.LATENCY:
            return percent(math.expm1(min(number, 50.0)), 1, signed=True)
        if self.outcome == outcomes.LATENCY_MEAN:
            return f"{fixed(number, 0, signed=True)} ms"
        return fixed(number, 3, signed=True)

    def tick(self, number: float) -> str:
        """A difference as the text of an axis: without the unit, which :attr:`unit` says."""
        if not number:
            return "0"
        if self.is_rate:
            return significant(100 * number, 3, signed=True)
        if self.outcome == outcomes.LATENCY:
            return significant(100 * math.expm1(min(number, 50.0)), 3, signed=True)
        return significant(number, 3, signed=True)

    @property
    def unit(self) -> str:
        if self.is_rate:
            return _t("percentage points")
        if self.outcome == outcomes.LATENCY:
            return _t("per cent")
        return _t("milliseconds") if self.outcome == outcomes.LATENCY_MEAN else _t("points of the score")


MEASURES = {
    one.outcome: one
    for one in (
        ExperimentMeasure(outcomes.HELPFUL, _("helpful rate, of the answers that were rated"), 0.05),
        ExperimentMeasure(outcomes.GROUNDEDNESS, _("groundedness of the answers"), 0.05),
        ExperimentMeasure(outcomes.REFUSAL, _("refusal rate"), 0.05),
        ExperimentMeasure(outcomes.FAILURE, _("failed answers"), 0.02),
        ExperimentMeasure(outcomes.LATENCY, _("typical latency"), 0.1),
        ExperimentMeasure(outcomes.LATENCY_MEAN, _("mean latency")),
    )
}


def primary(experiment: Experiment) -> ExperimentMeasure:
    return MEASURES[experiment.metric]


def guards(experiment: Experiment) -> list[ExperimentMeasure]:
    """The metrics that are shown beside the primary metric: none from which the primary metric could be inferred."""
    latencies = {outcomes.LATENCY, outcomes.LATENCY_MEAN}
    hidden = latencies if experiment.metric in latencies else {experiment.metric, outcomes.LATENCY_MEAN}
    return [one for one in MEASURES.values() if one.outcome not in hidden]


def effect_scale(experiment: Experiment) -> float:
    """The smallest effect on the stored scale of the metric: a logarithm for typical latency."""
    effect = experiment.smallest_effect
    return math.log1p(effect) if experiment.metric == outcomes.LATENCY else effect


def deviation(experiment: Experiment) -> float:
    """The standard deviation between visitors that was written down; of a rate, at most that of single answers.

    0 when none can be told: none was written down and the metric is no rate.
    """
    if experiment.standard_deviation is not None:
        return experiment.standard_deviation
    rate = experiment.baseline
    return math.sqrt(rate * (1 - rate)) if primary(experiment).is_rate and 0 < rate < 1 else 0.0
