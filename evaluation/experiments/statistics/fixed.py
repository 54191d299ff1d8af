"""One look, at a number of visitors that was written down before the first came. PURE."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from evaluation.experiments.statistics.samples import ArmSummary, Effect, Sample

# With fewer, the normal distribution is no good stand-in for Student's.
LEAST_PER_ARM = 100


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
    wanted = np.where(sample.treated, np.cumsum(sample.treated) <= treatment, np.cumsum(~sample.treated) <= control)
    return Sample(sample.values[wanted], sample.treated[wanted])
