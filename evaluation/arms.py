"""Which arm of an experiment a visitor is in, and the interval of the difference between both arms. PURE.

The arm is computed, not stored: the same visitor gets the same one in every process, and an experiment with another
salt shuffles them anew.

The interval is valid however often it is computed. The likelihood ratio of "some effect", drawn from a normal
distribution with standard deviation ``TAU``, to "no effect" is a martingale under the latter: the chance that it ever
reaches 1 / ``ALPHA`` is at most that (Ville, 1939). Inverted, it gives intervals that all hold the true difference at
once. Variances are estimated, so this is exact for many visitors only; hence there is no interval below
``LEAST_PER_ARM``.

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
# The effect for which the test is sharpest: five percentage points. Any value that is fixed beforehand keeps alpha.
TAU = 0.05


class Arm(StrEnum):
    CONTROL = "control"
    TREATMENT = "treatment"


def assign(salt: str, subject: str, traffic_share: float) -> Arm | None:
    """The visitor's arm, each with the same probability; None for visitors outside the experiment.

    Outside are the share of visitors beyond ``traffic_share``, in [0, 1], and a subject without identity (an empty
    one). A larger share moves nobody from one arm to the other.
    """
    if not 0 <= traffic_share <= 1:
        raise ValueError(f"A share lies between 0 and 1, unlike {traffic_share}.")
    if not subject or _uniform(salt, "traffic", subject) >= traffic_share:
        return None
    return Arm.TREATMENT if _uniform(salt, "arm", subject) < 0.5 else Arm.CONTROL


def _uniform(salt: str, purpose: str, subject: str) -> float:
    """In [0, 1), equally likely everywhere; 53 bits, which a float holds exactly."""
    digest = hashlib.blake2b("\0".join((purpose, salt, subject)).encode(), digest_size=16).digest()
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


@dataclass(frozen=True, slots=True)
class Effect:
    """Treatment minus control, with the bounds of its interval; infinite where the visitors show no spread."""

    difference: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.high - self.low)

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def effect(control: Sequence[float], treatment: Sequence[float]) -> Effect | None:
    """The difference of the means with its always-valid interval; None with too few visitors in an arm.

    Each arm has a number for each of its visitors. The variance is the larger of that from each arm's own spread and
    that from the spread of all, as if there were no effect: a small arm of rare events may by chance have seen none
    yet, and would look certain.
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
    return Effect(difference, difference - reach, difference + reach)
