"""What the stopping rule says of the visitors so far. PURE."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.experiments.statistics import fixed, sequential
from evaluation.experiments.statistics.planning import Plan
from evaluation.experiments.statistics.samples import ArmSummary, Effect, Sample


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
    seen = fixed.at_horizon(sample, plan.control, plan.treatment)
    if seen is None:
        return Conclusion()
    control, treatment = seen.control, seen.treatment
    return Conclusion(fixed.difference(control, treatment, alpha), control, treatment, is_final=True)


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
