"""The arms of visitors, and the interval of the difference between the arms."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.arms import ALPHA, LEAST_PER_ARM, TAU, ExperimentArm, assign_arm, estimate_effect

SUBJECTS = [f"visitor:{number:032x}" for number in range(20_000)]


def arms(salt, traffic_share=1.0):
    return [assign_arm(salt, one, traffic_share) for one in SUBJECTS]


@pytest.mark.parametrize("traffic", [1.0, 0.1])
def test_the_shares_are_those_asked_for(traffic):
    counts = Counter(arms("salt", traffic))
    within = counts[ExperimentArm.CONTROL] + counts[ExperimentArm.TREATMENT]
    assert abs(within / len(SUBJECTS) - traffic) < 4 * (traffic * (1 - traffic) / len(SUBJECTS)) ** 0.5 + 1e-12
    assert abs(counts[ExperimentArm.TREATMENT] / within - 0.5) < 4 * (0.25 / within) ** 0.5
    # Another experiment shuffles differently.
    other = arms("other", traffic)
    agree = [a == b for a, b in zip(arms("salt", traffic), other, strict=True) if a is not None and b is not None]
    assert abs(sum(agree) / len(agree) - 0.5) < 4 * (0.25 / len(agree)) ** 0.5


@given(st.text(max_size=40), st.text(min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_a_visitor_keeps_the_arm_and_more_traffic_moves_nobody(salt, subject, share, other):
    smaller, larger = sorted((share, other))
    before = assign_arm(salt, subject, smaller)
    assert before == assign_arm(salt, subject, smaller)
    if before is not None:
        assert before == assign_arm(salt, subject, larger)


def test_nobody_is_left_in_and_without_identity_everybody_is_out():
    assert set(arms("salt", traffic_share=0.0)) == {None}
    assert assign_arm("salt", "", 1.0) is None
    assert None not in arms("salt", traffic_share=1.0)


SIMULATIONS = 150


def means_of_some_answers(random, visitors):
    """Visitors with one to five answers each, alike within a visitor: what an analysis by answer gets wrong."""
    answers = random.integers(1, 6, visitors)
    return random.binomial(answers, random.beta(2, 1, visitors)) / answers


def looks(random, shift=0.0):
    """Both arms after every 25th of 3,000 visitors."""
    treated = random.random(3000) < 0.5
    values = means_of_some_answers(random, 3000) + shift * treated
    for seen in range(225, 3001, 25):
        yield values[:seen][~treated[:seen]], values[:seen][treated[:seen]]


def test_without_an_effect_looking_again_and_again_finds_one_at_most_at_the_stated_rate():
    random = np.random.default_rng(20_001)
    found = sum(
        any((told := estimate_effect(*arms)) is not None and told.excludes_zero for arms in looks(random))
        for _ in range(SIMULATIONS)
    )
    # More would happen to a correct test once in a thousand runs.
    assert found / SIMULATIONS <= ALPHA + 3.1 * math.sqrt(ALPHA * (1 - ALPHA) / SIMULATIONS)


def test_a_known_effect_is_found_and_every_interval_holds_it():
    random = np.random.default_rng(20_003)
    found = missed = 0
    for _ in range(100):
        told = [one for arms in looks(random, shift=0.1) if (one := estimate_effect(*arms)) is not None]
        found += any(one.low > 0 for one in told)
        missed += any(not one.low <= 0.1 <= one.high for one in told)
    assert found > 95
    assert missed <= 12


def test_the_interval_ends_where_the_likelihood_ratio_reaches_one_in_alpha():
    alike = [1.0, 0.0] * 100
    told = estimate_effect(alike, alike)
    variance = 2 * float(np.var(alike, ddof=1)) / 200
    ratio = math.sqrt(variance / (variance + TAU**2)) * math.exp(
        TAU**2 * told.high**2 / (2 * variance * (variance + TAU**2))
    )
    assert ratio == pytest.approx(1 / ALPHA, rel=0.01)


def test_there_is_no_interval_for_few_visitors_and_an_endless_one_without_spread():
    assert estimate_effect([0.0, 1.0] * (LEAST_PER_ARM // 2 - 1), [0.0, 1.0] * LEAST_PER_ARM) is None
    alike = estimate_effect([1.0] * 300, [1.0] * 300)
    assert not alike.is_known
    assert not alike.excludes_zero
    # An arm without a rare event is not certain: the variance comes from all visitors.
    assert not estimate_effect([0.0] * 100, [0.0] * 99 + [1.0]).excludes_zero
