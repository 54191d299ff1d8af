import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import statistics
from bench.statistics import refusal_precision
from evaluation.statistics import mean_interval


def test_a_paired_difference_sees_what_the_separate_intervals_hide():
    baseline = list(np.random.default_rng(3).uniform(size=50))
    better = [value + 0.01 + 0.002 * (number % 2) for number, value in enumerate(baseline)]
    apart, other = mean_interval(better), mean_interval(baseline)
    assert apart.low < other.high
    difference = statistics.paired_difference(better, baseline)
    assert difference.mean == pytest.approx(0.011)
    assert 0.010 < difference.low <= difference.mean <= difference.high < 0.012


labelled = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=30).filter(
    lambda rows: len({label for label, _ in rows}) == 2
)


@given(labelled)
def test_auroc_is_the_share_of_pairs_in_order(rows):
    labels, scores = zip(*rows, strict=True)
    pairs = [(yes > no) + (yes == no) / 2 for is_yes, yes in rows if is_yes for is_no, no in rows if not is_no]
    assert statistics.auroc(labels, scores) == pytest.approx(sum(pairs) / len(pairs))
    assert statistics.auroc(labels, [-score for score in scores]) == pytest.approx(1 - sum(pairs) / len(pairs))


def test_figures_need_values_of_both_kinds_and_as_many():
    with pytest.raises(ValueError, match="positive and a negative"):
        statistics.auroc([True, True], [1, 2])
    with pytest.raises(ValueError, match="needs its label"):
        statistics.auroc([True, False], [1])
    with pytest.raises(ValueError, match="same queries"):
        statistics.paired_difference([1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="both kinds"):
        refusal_precision([], [True])


def test_the_interval_of_auroc_holds_it_and_narrows_with_more_answers():
    random = np.random.default_rng(1)
    labels = [True, False] * 50
    scores = [float(random.normal(1.0 if label else 0.0)) for label in labels]
    few = statistics.auroc_interval(labels[:40], scores[:40], resamples=300)
    many = statistics.auroc_interval(labels, scores, resamples=300)
    assert many.low < many.mean < many.high
    assert many.high - many.low < few.high - few.low
    assert many == statistics.auroc_interval(labels, scores, resamples=300)


def test_precision_does_not_depend_on_how_many_of_a_kind_were_asked():
    few = refusal_precision([True, True, False, False], [True, False, False, False])
    many = refusal_precision([True, True, False, False] * 100, [True, False, False, False])
    assert few.mean == many.mean == pytest.approx(0.5 / 0.75)
    assert few.low <= few.mean <= few.high
    assert refusal_precision([False], [False, False]) is None
