"""A test that may be looked at after every visitor. PURE.

The likelihood ratio of "some effect", drawn from a normal distribution with standard deviation tau, to "no effect" is a
martingale under the latter: the chance that it ever reaches 1 / alpha is at most alpha (Ville, 1939). Turned around it
gives intervals that hold the true difference at all times at once. Variances are estimated, so that this is exact for
many visitors only; hence the first look comes after ``LEAST_PER_ARM``.

Sources: Robbins, "Statistical Methods Related to the Law of the Iterated Logarithm", Annals of Mathematical Statistics
1970; Johari, Koomen, Pekelis and Walsh, "Always Valid Inference", Operations Research 2022; Waudby-Smith, Arbour,
Sinha, Kennedy and Ramdas, "Time-Uniform Central Limit Theory and Asymptotic Confidence Sequences", Annals of
Statistics 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evaluation.experiments.statistics.samples import Effect, Flags, Floats, Sample

LEAST_PER_ARM = 100


@dataclass(frozen=True, slots=True)
class Path:
    """The difference after each visitor from the first look on, with its always-valid interval.

    ``visitors`` counts both arms; all arrays have the length of ``visitors``, which is 0 before the first look.
    ``decided_at`` is the number of visitors after which the interval first left 0 out; None when it never did.
    """

    visitors: Floats
    differences: Floats
    reaches: Floats
    decided_at: int | None

    @property
    def last(self) -> Effect | None:
        """Where the path stands; None before the first look."""
        if not len(self.visitors):
            return None
        difference, half = float(self.differences[-1]), float(self.reaches[-1])
        return Effect(difference, difference - half, difference + half)

    def until(self, visitors: int) -> Path:
        """The path up to so many visitors."""
        seen = self.visitors <= visitors
        decided_at = self.decided_at if self.decided_at is not None and self.decided_at <= visitors else None
        return Path(self.visitors[seen], self.differences[seen], self.reaches[seen], decided_at)


def reach(variance: Floats, alpha: float, tau: float) -> Floats:
    """Half the width of the always-valid interval around a difference that has this variance; infinite for 0.

    A difference of variance 0 has been seen without any spread, which says that there was too little to see.
    Raises: ValueError for an alpha outside (0, 1) or a tau that is not positive.
    """
    if not 0 < alpha < 1 or tau <= 0:
        raise ValueError(f"Alpha lies between 0 and 1, and tau is positive, unlike {alpha} and {tau}.")
    with np.errstate(divide="ignore", invalid="ignore"):
        total = variance + tau**2
        squared = variance * total / tau**2 * (np.log(total / variance) - 2 * np.log(alpha))
        reached: Floats = np.where(variance > 0, np.sqrt(squared), np.inf)
    return reached


def follow(sample: Sample, *, alpha: float, tau: float) -> Path:
    """The path of the difference through all looks. It does not stop where it is decided: see ``decided_at``.

    ``tau`` is the effect for which the test is sharpest; any value that was chosen beforehand keeps alpha.
    """
    variance, differences, least = _running(sample)
    looks = least >= LEAST_PER_ARM
    reaches = reach(variance[looks], alpha, tau)
    differences = differences[looks]
    visitors = (np.flatnonzero(looks) + 1).astype(np.float64)
    decided = np.flatnonzero(np.abs(differences) > reaches)
    return Path(visitors, differences, reaches, int(visitors[decided[0]]) if len(decided) else None)


def _running(sample: Sample) -> tuple[Floats, Floats, Floats]:
    """After each visitor: the variance of the difference, the difference, the size of the smaller arm.

    The variance is the larger of that from each arm's own spread and that from the spread of all, as if there were no
    effect: a small arm of rare events may by chance have seen none yet, and would look certain.
    """
    # Centred, for sums of squares of large numbers that hardly differ lose their digits.
    values = sample.values - (sample.values.mean() if len(sample) else 0.0)
    (size, mean, deviation), (treated_size, treated_mean, treated_deviation), (all_size, _mean, all_deviation) = (
        _running_arm(values, arm) for arm in (~sample.treated, sample.treated, np.ones_like(sample.treated))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        own = deviation / (size - 1) / size + treated_deviation / (treated_size - 1) / treated_size
        shared = all_deviation / (all_size - 1) * (1 / size + 1 / treated_size)
        variance = np.maximum(own, shared)
    return variance, treated_mean - mean, np.minimum(size, treated_size)


def _running_arm(values: Floats, arm: Flags) -> tuple[Floats, Floats, Floats]:
    """After each visitor: the arm's size, its mean, and the sum of squared deviations from it."""
    size = np.cumsum(arm).astype(np.float64)
    squares = np.cumsum(np.where(arm, values**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.cumsum(np.where(arm, values, 0.0)) / size
    deviation = np.maximum(squares - size * mean**2, 0.0)
    # What rounding leaves of equal values is no spread.
    return size, mean, np.where(deviation > 1e-12 * squares, deviation, 0.0)
