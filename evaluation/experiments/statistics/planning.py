"""How many visitors an experiment needs, reckoned before it starts. PURE."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from evaluation.experiments.statistics import sequential
from evaluation.experiments.statistics.samples import LEAST_PER_ARM

MOST_VISITORS = 10_000_000


class TooManyVisitors(ValueError):
    """No number of visitors up to the largest reckoned with shows so small an effect."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The visitors each arm needs; for a sequential test, the number after which it ends without a decision."""

    control: int
    treatment: int


def fixed_horizon(
    standard_deviation: float, smallest_effect: float, *, alpha: float, power: float, treatment_share: float
) -> Plan:
    """The visitors with which one two-sided look finds the effect with probability ``power``.

    Source: Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988. Raises: ValueError for what is not
    positive or no probability, TooManyVisitors.
    """
    _check(standard_deviation, smallest_effect, alpha, power, treatment_share)
    normal = NormalDist()
    needed = (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * standard_deviation / smallest_effect
    return _split(needed**2 / (treatment_share * (1 - treatment_share)), treatment_share, LEAST_PER_ARM)


def sequential_cap(
    standard_deviation: float, smallest_effect: float, *, alpha: float, power: float, treatment_share: float
) -> Plan:
    """The visitors with whom the last look alone finds the effect with probability ``power``.

    A cautious number: earlier looks find some that the last one would miss, and most experiments end well before it.
    Raises: as :func:`fixed_horizon`.
    """
    _check(standard_deviation, smallest_effect, alpha, power, treatment_share)
    normal_quantile = NormalDist().inv_cdf(power)

    def suffices(visitors: float) -> bool:
        variance = standard_deviation**2 / (visitors * treatment_share * (1 - treatment_share))
        reach = float(sequential.reach(np.array([variance]), alpha, smallest_effect)[0])
        return reach + normal_quantile * math.sqrt(variance) <= smallest_effect

    low, high = 1.0, 2.0
    while not suffices(high):
        low, high = high, high * 2
        if low > MOST_VISITORS:
            break
    while high - low > 0.5:
        middle = (low + high) / 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return _split(high, treatment_share, sequential.LEAST_PER_ARM)


def _split(visitors: float, treatment_share: float, least: int) -> Plan:
    if visitors > MOST_VISITORS:
        raise TooManyVisitors("So small an effect takes more than ten million visitors: choose a larger one.")
    visitors = max(visitors, least / min(treatment_share, 1 - treatment_share))
    return Plan(control=math.ceil(visitors * (1 - treatment_share)), treatment=math.ceil(visitors * treatment_share))


def _check(
    standard_deviation: float, smallest_effect: float, alpha: float, power: float, treatment_share: float
) -> None:
    if not (standard_deviation > 0 and smallest_effect > 0):
        raise ValueError("A standard deviation and an effect are positive.")
    if not all(0 < share < 1 for share in (alpha, power, treatment_share)):
        raise ValueError("Alpha, power and the share of the treatment lie between 0 and 1.")
