"""Visitors in the order in which they came, and what an arm's numbers amount to. PURE."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# With fewer visitors in an arm, the normal distribution is no good stand-in for Student's.
LEAST_PER_ARM = 100


@dataclass(frozen=True, slots=True)
class Sample:
    """One number a visitor, and whether it is a visitor of the treatment; in the order of their first answers."""

    values: Floats
    treated: Flags

    def __post_init__(self) -> None:
        if self.values.shape != self.treated.shape or self.values.ndim != 1:
            raise ValueError("Every visitor has one value and one arm.")
        if not np.isfinite(self.values).all():
            raise ValueError("An outcome that is unknown is left out, not a number.")

    def __len__(self) -> int:
        return len(self.values)

    def first(self, visitors: int) -> Sample:
        return Sample(self.values[:visitors], self.treated[:visitors])

    def complete_after(self, control: int, treatment: int) -> int | None:
        """The number of visitors after which both arms have so many; None while one has not."""
        complete = (np.cumsum(~self.treated) >= control) & (np.cumsum(self.treated) >= treatment)
        return int(np.argmax(complete)) + 1 if complete.any() else None

    @property
    def control(self) -> ArmSummary:
        return summarize(self.values[~self.treated])

    @property
    def treatment(self) -> ArmSummary:
        return summarize(self.values[self.treated])


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """The visitors of an arm. ``mean`` is NaN without visitors, ``variance`` (unbiased) with fewer than two."""

    visitors: int
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class Effect:
    """Treatment minus control, and the bounds that hold the true difference with the confidence asked for."""

    difference: float
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether the interval is finite; without any spread among the visitors it is not."""
        return math.isfinite(self.high - self.low)

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def summarize(values: Floats) -> ArmSummary:
    return ArmSummary(
        visitors=len(values),
        mean=float(values.mean()) if len(values) else float("nan"),
        variance=float(values.var(ddof=1)) if len(values) > 1 else float("nan"),
    )
