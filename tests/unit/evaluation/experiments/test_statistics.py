from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.experiments.statistics import balance, conclusion, planning, sequential
from evaluation.experiments.statistics.samples import LEAST_PER_ARM, Effect, Sample, summarize

PLAN = {"alpha": 0.05, "power": 0.8, "treatment_share": 0.5}


def sample(control: list[float], treatment: list[float]) -> Sample:
    """Visitors of the two arms in turn, then the rest."""
    pairs = [(value, arm) for arm, values in enumerate((control, treatment)) for value in values]
    order = sorted(range(len(pairs)), key=lambda at: (at if at < len(control) else at - len(control), pairs[at][1]))
    values = np.array([pairs[at][0] for at in order], dtype=np.float64)
    return Sample(values, np.array([pairs[at][1] == 1 for at in order], dtype=np.bool_))


def test_what_an_arm_amounts_to():
    told = summarize(np.array([1.0, 2.0, 4.0]))
    assert (told.visitors, told.mean) == (3, pytest.approx(7 / 3))
    assert told.variance == pytest.approx(7 / 3)
    assert math.isnan(summarize(np.array([])).mean)
    assert math.isnan(summarize(np.array([1.0])).variance)


def test_an_unknown_outcome_is_no_number():
    with pytest.raises(ValueError, match="left out"):
        sample([0.0, math.nan], [1.0])
    with pytest.raises(ValueError, match="one value and one arm"):
        Sample(np.zeros(2), np.zeros(3, dtype=np.bool_))


def test_the_interval_of_one_look_is_that_of_the_textbook():
    """Two rates of 0.3 and 0.4, 200 visitors each: 0.1 plus or minus 1.96 standard errors."""
    control, treatment = (summarize(np.repeat([1.0, 0.0], counts)) for counts in ([60, 140], [80, 120]))
    effect = conclusion.difference(control, treatment, 0.05)
    error = math.sqrt(0.3 * 0.7 / 199 + 0.4 * 0.6 / 199)
    assert effect.difference == pytest.approx(0.1)
    assert (effect.low, effect.high) == (pytest.approx(0.1 - 1.959964 * error), pytest.approx(0.1 + 1.959964 * error))
    assert effect.excludes_zero
    with pytest.raises(ValueError, match="two visitors"):
        conclusion.difference(summarize(np.ones(1)), treatment, 0.05)


def test_an_interval_that_touches_zero_excludes_nothing():
    assert not Effect(0.1, 0.0, 0.2).excludes_zero
    assert Effect(-0.1, -0.2, -0.01).excludes_zero


def test_who_comes_after_the_horizon_changes_nothing():
    early = sample([0.0, 1.0, 0.0], [1.0, 1.0, 0.0])
    late = Sample(np.append(early.values, [9.0, 9.0, 9.0]), np.append(early.treated, [True, False, True]))
    for seen in (early, late):
        reached = conclusion.at_horizon(seen, 2, 3)
        assert reached is not None
        assert (reached.control.visitors, reached.control.mean) == (2, 0.5)
        assert (reached.treatment.visitors, reached.treatment.mean) == (3, pytest.approx(2 / 3))
    assert conclusion.at_horizon(early, 3, 4) is None


def test_the_always_valid_reach_is_where_the_likelihood_ratio_reaches_one_in_alpha():
    variance, tau, alpha = 0.002, 0.05, 0.05
    difference = float(sequential.reach(np.array([variance]), alpha, tau)[0])
    ratio = math.sqrt(variance / (variance + tau**2)) * math.exp(
        tau**2 * difference**2 / (2 * variance * (variance + tau**2))
    )
    assert ratio == pytest.approx(1 / alpha)


def test_no_spread_is_no_certainty():
    path = sequential.follow(sample([1.0] * 300, [1.0] * 300), alpha=0.05, tau=0.05)
    assert path.decided_at is None
    assert math.isinf(path.reaches[-1])
    same_but_large = sequential.follow(sample([1e9] * 150, [1e9] * 150), alpha=0.05, tau=0.05)
    assert same_but_large.decided_at is None


def test_nothing_is_told_before_the_first_look():
    short = sample([0.0, 1.0] * 49, [0.0, 1.0] * 49)
    path = sequential.follow(short, alpha=0.05, tau=0.05)
    assert (len(path.visitors), path.last, path.decided_at) == (0, None, None)
    empty = sequential.follow(sample([], []), alpha=0.05, tau=0.05)
    assert empty.last is None


@given(st.integers(0, 2**32 - 1), st.integers(210, 400))
def test_the_path_is_what_the_visitors_so_far_amount_to_and_later_ones_change_none_of_it(seed, at):
    random = np.random.default_rng(seed)
    whole = Sample(random.normal(100.0, 3.0, 400), random.random(400) < 0.5)
    path = sequential.follow(whole, alpha=0.05, tau=1.0)
    head = whole.first(at)
    upto = sequential.follow(head, alpha=0.05, tau=1.0)
    assert len(upto.visitors) <= len(path.visitors)
    if upto.last is not None:
        assert upto.last.difference == pytest.approx(head.treatment.mean - head.control.mean)
        own = head.control.variance / head.control.visitors + head.treatment.variance / head.treatment.visitors
        assert upto.reaches[-1] >= sequential.reach(np.array([own]), 0.05, 1.0)[0] - 1e-9
        assert np.allclose(upto.differences, path.differences[: len(upto.visitors)])
        assert np.allclose(upto.reaches, path.reaches[: len(upto.visitors)])


@pytest.mark.parametrize(("alpha", "tau"), [(0.0, 0.1), (1.0, 0.1), (0.05, 0.0)])
def test_a_reach_needs_an_alpha_and_a_tau(alpha, tau):
    with pytest.raises(ValueError, match="Alpha"):
        sequential.reach(np.array([0.1]), alpha, tau)


def test_the_fixed_plan_is_that_of_the_textbook():
    """16 s^2 / d^2 visitors an arm at 80 % power, as the rule of thumb has it (Lehr 1992)."""
    plan = planning.fixed_horizon(0.5, 0.05, **PLAN)
    assert plan.control == plan.treatment == 1570
    skewed = planning.fixed_horizon(0.5, 0.05, **{**PLAN, "treatment_share": 0.2})
    assert abs(skewed.control - 4 * skewed.treatment) <= 4
    assert skewed.control + skewed.treatment > 1.5 * (plan.control + plan.treatment)
    assert planning.fixed_horizon(0.1, 0.9, **PLAN).control == LEAST_PER_ARM


def test_a_sequential_experiment_may_take_more_and_a_smaller_effect_always_does():
    last = planning.sequential_cap(0.5, 0.2, **PLAN)
    assert last.control > planning.fixed_horizon(0.5, 0.2, **PLAN).control
    for effect in (0.1, 0.05, 0.02):
        plan = planning.sequential_cap(0.5, effect, **PLAN)
        assert plan.control > last.control
        last = plan


@pytest.mark.parametrize("reckon", [planning.fixed_horizon, planning.sequential_cap])
def test_what_cannot_be_planned_is_refused(reckon):
    with pytest.raises(planning.TooManyVisitors, match="larger"):
        reckon(0.5, 1e-6, **PLAN)
    with pytest.raises(ValueError, match="positive"):
        reckon(0.0, 0.1, **PLAN)
    with pytest.raises(ValueError, match="Alpha"):
        reckon(0.5, 0.1, **{**PLAN, "power": 1.0})


def test_evidence_of_imbalance_weighs_the_sizes():
    assert balance.evidence_of_imbalance(0, 0, 0.5) == pytest.approx(1.0)
    assert balance.evidence_of_imbalance(500, 500, 0.5) < 1
    assert balance.is_imbalanced(400, 600, 0.5)
    assert not balance.is_imbalanced(800, 200, 0.2)
    assert math.isfinite(balance.evidence_of_imbalance(10_000_000, 0, 0.5))
    with pytest.raises(ValueError, match="share"):
        balance.evidence_of_imbalance(1, 1, 1.0)
