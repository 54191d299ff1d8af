"""The interval of a difference, looked at again and again: the stated false positives at most; known effects found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np
import pytest

from evaluation.experiments.intervals import LEAST_PER_ARM, TAU, ArmRate, Effect, effect, is_imbalanced

ALPHA = 0.05
SIMULATIONS = 300
Draw = Callable[[np.random.Generator, int], np.ndarray]


def rate(share: float) -> Draw:
    return lambda random, visitors: (random.random(visitors) < share).astype(np.float64)


def means_of_some_answers(random: np.random.Generator, visitors: int) -> np.ndarray:
    """Visitors with one to five answers each, alike within a visitor: what an analysis by answer gets wrong."""
    answers = random.integers(1, 6, visitors)
    return random.binomial(answers, random.beta(2, 1, visitors)) / answers


def looks(random: np.random.Generator, draw: Draw, shift: float = 0.0) -> Iterator[tuple[ArmRate, ArmRate]]:
    """Both arms after every 25th of 3,000 visitors."""
    treated = random.random(3000) < 0.5
    values = draw(random, 3000) + shift * treated
    for seen in range(225, 3001, 25):
        yield arm(values[:seen][~treated[:seen]]), arm(values[:seen][treated[:seen]])


def arm(values: np.ndarray) -> ArmRate:
    return ArmRate(len(values), float(values.mean()), float(values.var(ddof=1)))


def most_by_chance(simulations: int = SIMULATIONS) -> float:
    """More than this share of false positives would happen to a correct test once in a thousand runs."""
    return ALPHA + 3.1 * math.sqrt(ALPHA * (1 - ALPHA) / simulations)


@pytest.mark.parametrize("draw", [rate(0.5), rate(0.97), means_of_some_answers], ids=["half", "rare", "answers alike"])
def test_without_an_effect_looking_again_and_again_finds_one_at_most_at_the_stated_rate(draw):
    random = np.random.default_rng(20_001)
    found = sum(
        any((told := effect(*arms, ALPHA)) is not None and told.excludes_zero for arms in looks(random, draw))
        for _ in range(SIMULATIONS)
    )
    assert found / SIMULATIONS <= most_by_chance()


def test_the_simulations_can_tell_a_test_that_peeks():
    random = np.random.default_rng(20_002)
    quantile = NormalDist().inv_cdf(1 - ALPHA / 2)
    found = sum(
        any(
            abs(treatment.mean - control.mean)
            > quantile * math.sqrt(control.variance / control.visitors + treatment.variance / treatment.visitors)
            for control, treatment in looks(random, rate(0.5))
        )
        for _ in range(SIMULATIONS)
    )
    assert found / SIMULATIONS > 0.2


def test_a_known_effect_is_found_and_every_interval_holds_it():
    random = np.random.default_rng(20_003)
    found = missed = 0
    for _ in range(100):
        told = [one for arms in looks(random, rate(0.6), shift=0.1) if (one := effect(*arms, ALPHA)) is not None]
        found += any(one.low > 0 for one in told)
        missed += any(not one.low <= 0.1 <= one.high for one in told)
    assert found > 95
    assert missed <= 12


def test_the_interval_ends_where_the_likelihood_ratio_reaches_one_in_alpha():
    control, treatment = ArmRate(200, 0.3, 0.2), ArmRate(200, 0.3, 0.2)
    told = effect(control, treatment, ALPHA)
    assert told is not None
    variance = 2 * 0.2 / 200
    ratio = math.sqrt(variance / (variance + TAU**2)) * math.exp(
        TAU**2 * told.high**2 / (2 * variance * (variance + TAU**2))
    )
    assert ratio == pytest.approx(1 / ALPHA, rel=0.01)
    with pytest.raises(ValueError, match="Alpha"):
        effect(control, treatment, 1.0)


def test_there_is_no_interval_for_few_visitors_and_an_endless_one_without_spread():
    few, many = ArmRate(LEAST_PER_ARM - 1, 0.5, 0.25), ArmRate(LEAST_PER_ARM, 0.5, 0.25)
    assert effect(few, many, ALPHA) is None
    alike = effect(ArmRate(300, 1.0, 0.0), ArmRate(300, 1.0, 0.0), ALPHA)
    assert alike is not None
    assert not alike.is_known
    assert not alike.excludes_zero
    # One arm that has seen none of a rare event is not certain: the variance is that of all visitors.
    rare = effect(ArmRate(100, 0.0, 0.0), ArmRate(100, 0.0, 0.0), ALPHA)
    assert rare is not None
    assert not rare.excludes_zero


def test_an_interval_that_touches_zero_excludes_nothing():
    assert not Effect(0.1, 0.0, 0.2).excludes_zero
    assert Effect(-0.1, -0.2, -0.01).excludes_zero


def test_equal_arms_raise_no_alarm_and_lost_visitors_do():
    random = np.random.default_rng(20_007)

    def alarms(share: float) -> int:
        treated = np.cumsum(random.random((300, 2000)) < share, axis=1)[:, 49::50]
        at = range(50, 2001, 50)
        return sum(any(is_imbalanced(n - int(t), int(t)) for n, t in zip(at, row, strict=True)) for row in treated)

    assert not is_imbalanced(0, 0)
    assert is_imbalanced(10_000_000, 0)
    assert alarms(0.5) <= 2
    assert alarms(0.42) > 290
