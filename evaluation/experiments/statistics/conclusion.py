"""What the stopping rule says of the visitors so far. PURE."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from evaluation.experiments.statistics import sequential
from evaluation.experiments.statistics.planning import Plan
from evaluation.experiments.statistics.samples import ArmSummary, Effect, Sample


def difference(control: ArmSummary, treatment: ArmSummary, alpha: float) -> Effect:
    """The difference of the means with its 1 - alpha interval, which is right for one look only.

    By the normal approximation with a variance for each arm (Welch, Biometrika 1947). Raises: ValueError for an arm
    with fewer than two visitors.
    """
    if min(control.visitors, treatment.visitors) < 2:
        raise ValueError("A variance takes two visitors in each arm.")
    estimate = treatment.mean - control.mean
    error = math.sqrt(control.variance / control.visitors + treatment.variance / treatment.visitors)
    reach = NormalDist().inv_cdf(1 - alpha / 2) * error
    return Effect(estimate, estimate - reach, estimate + reach)


def at_horizon(sample: Sample, control: int, treatment: int) -> Sample | None:
    """The first ``control`` and the first ``treatment`` visitors of the arms; None until both are complete.

    Who comes later changes nothing, so that the result is the same whenever it is looked at.
    """
    if sample.complete_after(control, treatment) is None:
        return None
    counted = np.where(sample.treated, np.cumsum(sample.treated) <= treatment, np.cumsum(~sample.treated) <= control)
    return Sample(sample.values[counted], sample.treated[counted])


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The difference as far as the rule lets it be seen.

    ``effect`` and the arms are None while there is nothing to see: before the horizon of a fixed design, before the
    first look of a sequential one. ``is_final`` says that no later visitor changes anything. ``path`` is that of a
    sequential test, up to where it ended.
    """

    effect: Effect | None = None
    control: ArmSummary | None = None
    treatment: ArmSummary | None = None
    is_final: bool = False
    path: sequential.Path | None = None

    @property
    def is_decided(self) -> bool:
        return self.is_final and self.effect is not None and self.effect.excludes_zero


def at_fixed_horizon(sample: Sample, plan: Plan, *, alpha: float) -> Conclusion:
    """The one look, at the first visitors up to the plan; nothing before they are complete."""
    seen = at_horizon(sample, plan.control, plan.treatment)
    if seen is None:
        return Conclusion()
    control, treatment = seen.control, seen.treatment
    return Conclusion(difference(control, treatment, alpha), control, treatment, is_final=True)


def by_sequential_test(sample: Sample, plan: Plan, *, alpha: float, tau: float) -> Conclusion:
    """Where the test stands, or where it ended: by a decision, or because both arms have their planned visitors.

    Later visitors are left out, so that the result is the same whenever it is looked at.
    """
    last = sample.complete_after(plan.control, plan.treatment)
    seen = sample if last is None else sample.first(last)
    path = sequential.follow(seen, alpha=alpha, tau=tau)
    is_final = path.decided_at is not None or last is not None
    if path.decided_at is not None:
        seen = seen.first(path.decided_at)
        path = path.until(path.decided_at)
    if path.last is None:
        return Conclusion(path=path)
    return Conclusion(path.last, seen.control, seen.treatment, is_final, path)
