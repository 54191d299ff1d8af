import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import statistics
from evaluation import statistics as metrics

documents = st.integers(0, 30)
rankings = st.lists(documents, unique=True, max_size=20)
judgements = st.dictionaries(documents, st.integers(-1, 3), max_size=20)
cutoffs = st.integers(1, 25)
METRICS = [metrics.ndcg, metrics.hit, metrics.recall, metrics.reciprocal_rank]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("ranking", "grades"), [([], {"a": 1}), (["a"], {}), (["a"], {"a": 0}), (["a"], {"a": -1})])
def test_nothing_found_or_nothing_relevant_is_zero(metric, ranking, grades):
    assert metric(ranking, grades, 10) == 0.0


@pytest.mark.parametrize("metric", METRICS)
def test_impossible_rankings_are_refused(metric):
    with pytest.raises(ValueError, match="twice"):
        metric(["a", "a"], {"a": 1}, 10)
    with pytest.raises(ValueError, match="not at 0"):
        metric(["a"], {"a": 1}, 0)


def trec_eval_ndcg_cut(ranking, grades, k):
    """Return nDCG as m_ndcg_cut.c does: running sums over the list and over the ideal list, natural logarithms."""
    gained = ideal = 0.0
    for at, document in enumerate(ranking):
        if at >= k:
            break
        gain = grades.get(document, 0)
        if gain > 0:
            gained += gain * math.log(2) / math.log(at + 2)
    remaining = {grade: sum(g == grade for g in grades.values()) for grade in set(grades.values()) if grade > 0}
    for at in range(k):
        if not remaining:
            break
        best = max(remaining)
        ideal += best * math.log(2) / math.log(at + 2)
        remaining[best] -= 1
        if not remaining[best]:
            del remaining[best]
    return gained / ideal if ideal > 0 else 0.0


@given(rankings, judgements, cutoffs)
def test_ndcg_equals_another_implementation(ranking, grades, k):
    assert metrics.ndcg(ranking, grades, k) == pytest.approx(trec_eval_ndcg_cut(ranking, grades, k))


@given(rankings, judgements, cutoffs)
def test_the_others_equal_set_arithmetic(ranking, grades, k):
    relevant = {document for document, grade in grades.items() if grade > 0}
    ranks = [rank for rank, document in enumerate(ranking, 1) if document in relevant and rank <= k]
    assert metrics.hit(ranking, grades, k) == (1.0 if ranks else 0.0)
    assert metrics.recall(ranking, grades, k) == pytest.approx(
        len(relevant & set(ranking[:k])) / len(relevant) if relevant else 0
    )
    assert metrics.reciprocal_rank(ranking, grades, k) == (1 / ranks[0] if ranks else 0.0)


def test_the_interval_holds_the_true_mean_about_95_times_in_100():
    random = np.random.default_rng(2)
    held = 0
    for _ in range(300):
        interval = statistics.mean_interval(list(random.exponential(size=80)), resamples=300)
        held += interval.low <= 1.0 <= interval.high
    assert 0.89 <= held / 300 <= 0.98


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_an_interval_is_the_same_each_time_and_within_the_values(values):
    interval = statistics.mean_interval(values, resamples=100)
    assert interval == statistics.mean_interval(values, resamples=100)
    assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9


def test_intervals_and_percentiles_need_values():
    for figure in (statistics.mean_interval, statistics.percentiles):
        with pytest.raises(ValueError, match="at least one"):
            figure([])
    assert statistics.percentile([4.0, 1.0, 3.0, 2.0], 50) == 2.5
    assert statistics.percentile([1.0, 2.0], 95) == pytest.approx(1.95)


def test_a_loss_in_few_questions_may_be_chance():
    assert statistics.compute_chance_of_loss([]) == 1.0
    assert statistics.compute_chance_of_loss([0.0, 0.0]) == 1.0
    assert statistics.compute_chance_of_loss([-1.0]) == 0.25
    assert statistics.compute_chance_of_loss([-1.0, -1.0, -1.0, 0.0]) == 1 / 16
    # One of eight is lower, none other equal.
    assert statistics.compute_chance_of_loss([-0.3, -0.2, 0.1]) == (1 + 1 / 2) / 8


@given(st.lists(st.floats(-1, 1).filter(lambda value: abs(value) > 0.01), min_size=1, max_size=10))
def test_the_chances_of_a_loss_and_of_a_gain_add_up(differences):
    loss = statistics.compute_chance_of_loss(differences)
    gain = statistics.compute_chance_of_loss([-value for value in differences])
    assert loss >= 0.5 ** (len(differences) + 1)
    assert loss + gain == pytest.approx(1)


def test_the_chance_of_a_loss_is_the_same_counted_and_drawn(monkeypatch):
    differences = [-0.5, -0.4, 0.3, -0.2, -0.6, 0.1, -0.3, 0.2, -0.1]
    counted = statistics.compute_chance_of_loss(differences)
    monkeypatch.setattr(statistics, "EXACT_FLIPS", 5)
    assert statistics.compute_chance_of_loss(differences, resamples=20_000) == pytest.approx(counted, abs=0.01)


def test_a_loss_lies_below_what_is_allowed_and_is_not_by_chance():
    few, many = [-1.0] * 4, [-1.0] * 6
    assert not statistics.is_significant_loss(statistics.mean_interval(few), few)
    assert statistics.is_significant_loss(statistics.mean_interval(many), many)
    assert statistics.is_significant_loss(statistics.mean_interval(many), many, allowed=0.9)
    assert not statistics.is_significant_loss(statistics.mean_interval(many), many, allowed=1.0)
