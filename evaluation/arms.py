"""Assign visitors to the two arms of an experiment, control and treatment, and estimate their difference.

The arm is computed from a salt and the visitor, so all processes agree.

The difference has an interval that is valid however often it is computed: the chance that it ever excludes the true
difference is at most ``ALPHA``. The interval contains all values that a sequential test does not reject. The test
compares a value with alternatives from a normal distribution around the value, with standard deviation ``TAU``. It
rejects the value when the likelihood ratio reaches 1 / ``ALPHA``. For the true difference, the ratio is a martingale,
so the chance of a rejection is at most ``ALPHA`` (Ville, 1939). Variances of few visitors are imprecise, so there is no
interval below ``LEAST_PER_ARM`` visitors.

Sources: Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm", Annals of Mathematical Statistics
1970; Johari, Koomen, Pekelis and Walsh, "Always Valid Inference", Operations Research 2022.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

ALPHA = 0.05
LEAST_PER_ARM = 100
# The test is most sensitive to an effect of TAU (five percentage points), which must be fixed before the experiment.
TAU = 0.05


class ExperimentArm(StrEnum):
    CONTROL = "control"
    TREATMENT = "treatment"


def assign_arm(salt: str, subject: str, traffic_share: float) -> ExperimentArm | None:
    """Return the visitor's arm, each equally likely; None if the visitor takes no part or ``subject`` is empty.

    If ``traffic_share`` grows, visitors keep their arms.
    """
    if not subject or _draw_uniform(salt, "traffic", subject) >= traffic_share:
        return None
    return ExperimentArm.TREATMENT if _draw_uniform(salt, "arm", subject) < 0.5 else ExperimentArm.CONTROL


def _draw_uniform(salt: str, purpose: str, subject: str) -> float:
    digest = hashlib.blake2b("\0".join((purpose, salt, subject)).encode(), digest_size=16).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


@dataclass(frozen=True, slots=True)
class ExperimentEffect:
    """The effect of an experiment: the mean of the treatment minus the mean of the control.

    The confidence interval from ``low`` to ``high`` is infinite if all visitors have the same value.
    """

    difference: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.high - self.low)

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def estimate_effect(control: Sequence[float], treatment: Sequence[float]) -> ExperimentEffect | None:
    """Return the difference of the means with its interval; None if an arm has too few visitors.

    ``control`` and ``treatment`` have one number for each visitor. The interval uses the larger of two
    variances: one from each arm's own variance, and one from the pooled variance.
    """
    n, m = len(control), len(treatment)
    if min(n, m) < LEAST_PER_ARM:
        return None
    difference = float(np.mean(treatment) - np.mean(control))
    own = np.var(control, ddof=1) / n + np.var(treatment, ddof=1) / m
    pooled = np.var(np.concatenate((control, treatment)), ddof=1) * (1 / n + 1 / m)
    variance = float(max(own, pooled))
    reach = math.inf
    if variance > 0:
        total = variance + TAU**2
        reach = math.sqrt(variance * total / TAU**2 * (math.log(total / variance) - 2 * math.log(ALPHA)))
    return ExperimentEffect(difference, difference - reach, difference + reach)
