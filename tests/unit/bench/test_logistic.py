from __future__ import annotations

import numpy as np
import pytest

from bench.groundedness.logistic import fit


def test_the_weights_that_made_the_labels_are_found():
    random = np.random.default_rng(0)
    features = random.normal(size=(20_000, 2)) * [1.0, 5.0]
    probability = 1 / (1 + np.exp(-(-1.0 + 2.0 * features[:, 0] - 0.3 * features[:, 1])))
    intercept, weights = fit(features, random.random(len(features)) < probability)
    assert intercept == pytest.approx(-1.0, abs=0.1)
    assert weights == pytest.approx([2.0, -0.3], abs=0.1)


def test_a_penalty_makes_weights_smaller_and_a_constant_column_has_none():
    features = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    labels = np.array([False, True, False, True])
    _, loose = fit(features, labels, penalty=0.1)
    _, tight = fit(features, labels, penalty=10.0)
    assert 0 < tight[0] < loose[0]
    assert tight[1] == 0


def test_labels_of_one_kind_teach_nothing():
    with pytest.raises(ValueError, match="positive and a negative"):
        fit(np.zeros((3, 1)), np.array([True, True, True]))
