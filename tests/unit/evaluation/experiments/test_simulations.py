"""Simulated visitors: a known effect is found, and where there is none, none is found but at the stated rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import pytest

from evaluation.experiments.statistics import balance, conclusion, planning, sequential
from evaluation.experiments.statistics.samples import Floats, Sample

ALPHA = 0.05
SIMULATIONS = 500
Draw = Callable[[np.random.Generator, int], Floats]


def rate(share: float) -> Draw:
    return lambda random, visitors: (random.random(visitors) < share).astype(np.float64)


def log_normal(random: np.random.Generator, visitors: int) -> Floats:
    return np.exp(random.normal(6.0, 0.8, visitors))


def means_of_some_answers(random: np.random.Generator, visitors: int) -> Floats:
    """Visitors with one to five answers each, alike within a visitor: what an analysis by answer gets wrong."""
    answers = random.integers(1, 6, visitors)
    return random.binomial(answers, random.beta(2, 1, visitors)) / answers


def simulated(
    random: np.random.Generator, visitors: int, draw: Draw, *, effect: float = 0.0, share: float = 0.5
) -> Sample:
    treated = random.random(visitors) < share
    return Sample(draw(random, visitors) + effect * treated, treated)


def most_by_chance(alpha: float = ALPHA, simulations: int = SIMULATIONS) -> float:
    """More than this share of false positives would happen to a correct test once in a thousand runs."""
    return alpha + 3.1 * math.sqrt(alpha * (1 - alpha) / simulations)


def naive(sample: Sample) -> bool:
    """Whether somebody who looks after every visitor at the interval for one look would ever have seen an effect."""
    variance, differences, least = sequential._running(sample)
    looks = least >= sequential.LEAST_PER_ARM
    return bool((np.abs(differences[looks]) > NormalDist().inv_cdf(1 - ALPHA / 2) * np.sqrt(variance[looks])).any())


@pytest.mark.parametrize(
    ("draw", "tau", "share"),
    [
        (rate(0.5), 0.05, 0.5),
        (rate(0.8), 0.1, 0.3),
        (rate(0.97), 0.05, 0.1),
        (log_normal, 60.0, 0.5),
        (means_of_some_answers, 0.05, 0.5),
    ],
    ids=["half", "four fifths, a third treated", "rare, a tenth treated", "latency", "answers alike"],
)
def test_without_an_effect_looking_after_every_visitor_finds_one_at_most_at_the_stated_rate(draw, tau, share):
    random = np.random.default_rng(20_001)
    samples = (simulated(random, 3000, draw, share=share) for _ in range(SIMULATIONS))
    found = sum(sequential.follow(one, alpha=ALPHA, tau=tau).decided_at is not None for one in samples)
    assert found / SIMULATIONS <= most_by_chance()


def test_the_simulations_can_tell_a_test_that_peeks():
    random = np.random.default_rng(20_002)
    found = sum(naive(simulated(random, 3000, rate(0.5))) for _ in range(300))
    assert found / 300 > 0.2


@pytest.mark.parametrize("design", ["fixed", "sequential"])
@pytest.mark.parametrize(
    ("draw", "deviation", "effect", "share"),
    [(rate(0.7), math.sqrt(0.7 * 0.3), 0.08, 0.5), (log_normal, 420 * math.sqrt(2), 120.0, 0.25)],
    ids=["rate", "latency"],
)
def test_a_known_effect_is_found_with_the_stated_power(design, draw, deviation, effect, share):
    random = np.random.default_rng(20_003)
    simulations = 400
    options = {"alpha": ALPHA, "power": 0.8, "treatment_share": share}
    found = wrong = 0
    reckon = planning.fixed_horizon if design == "fixed" else planning.sequential_cap
    plan = reckon(deviation, effect, **options)
    for _ in range(simulations):
        sample = simulated(random, plan.control + plan.treatment, draw, effect=effect, share=share)
        if design == "fixed":
            result = conclusion.difference(sample.control, sample.treatment, ALPHA)
            found, wrong = found + (result.low > 0), wrong + (result.high < 0)
        else:
            path = sequential.follow(sample, alpha=ALPHA, tau=effect)
            if path.decided_at is not None:
                up = path.differences[path.visitors == path.decided_at][0] > 0
                found, wrong = found + up, wrong + (not up)
    assert found / simulations >= 0.8 - 3.1 * math.sqrt(0.8 * 0.2 / simulations)
    assert wrong / simulations <= ALPHA


def test_one_look_at_the_horizon_finds_nothing_at_the_stated_rate():
    random = np.random.default_rng(20_004)
    found = 0
    for _ in range(4000):
        sample = conclusion.at_horizon(simulated(random, 900, rate(0.6), share=0.4), 400, 200)
        assert sample is not None
        found += conclusion.difference(sample.control, sample.treatment, ALPHA).excludes_zero
    assert abs(found / 4000 - ALPHA) <= most_by_chance(simulations=4000) - ALPHA


def test_the_interval_holds_the_true_effect_at_all_times_at_once():
    random = np.random.default_rng(20_005)
    missed = 0
    for _ in range(SIMULATIONS):
        path = sequential.follow(simulated(random, 3000, rate(0.6), effect=0.1), alpha=ALPHA, tau=0.05)
        missed += bool((np.abs(path.differences - 0.1) > path.reaches).any())
    assert missed / SIMULATIONS <= most_by_chance()


def test_an_effect_is_found_sooner_when_it_is_larger():
    random = np.random.default_rng(20_006)

    def typical(effect: float) -> float:
        paths = [
            sequential.follow(simulated(random, 6000, rate(0.5), effect=effect), alpha=ALPHA, tau=0.05)
            for _ in range(60)
        ]
        return float(np.median([path.decided_at or 6000 for path in paths]))

    assert typical(0.2) < typical(0.1) < 3000


def test_planned_sizes_raise_no_alarm_and_lost_visitors_do():
    random = np.random.default_rng(20_007)

    def alarms(share: float) -> int:
        treated = np.cumsum(random.random((300, 2000)) < share, axis=1)[:, 49::50]
        looks = range(50, 2001, 50)
        return sum(
            any(balance.is_imbalanced(n - t, int(t), 0.5) for n, t in zip(looks, row, strict=True)) for row in treated
        )

    assert alarms(0.5) <= 2
    assert alarms(0.42) > 290
