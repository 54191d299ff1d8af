"""Logistic regression, for the few weights that the project fits itself. PURE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Vector = npt.NDArray[np.float64]

PENALTY = 3.0
ITERATIONS = 50
_CONVERGED = 1e-9


def fit(features: Vector, positive: npt.NDArray[np.bool_], penalty: float = PENALTY) -> tuple[float, Vector]:
    """The intercept and one weight a column that make the labels most likely, less a penalty on large weights.

    ``features`` has the shape (rows, columns). The penalty is half its value times the sum of the squares of the
    weights of columns brought to unit deviation; the intercept is free. A column that never varies has the weight 0.
    Raises: ValueError without a positive and a negative.

    Source: Hastie, Tibshirani, Friedman, "The Elements of Statistical Learning", 2nd edition, section 4.4 (Newton's
    method).
    """
    labels = positive.astype(np.float64)
    if not 0 < labels.sum() < len(labels):
        raise ValueError("Weights need a positive and a negative to be fitted on.")
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    rows = np.column_stack([np.ones(len(features)), (features - mean) / deviation])
    ridge = np.diag([0.0] + [penalty] * features.shape[1])
    weights = np.zeros(rows.shape[1])
    for _ in range(ITERATIONS):
        expected = 1.0 / (1.0 + np.exp(-(rows @ weights)))
        gradient = rows.T @ (labels - expected) - ridge @ weights
        curvature = (rows * (expected * (1.0 - expected))[:, None]).T @ rows + ridge
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < _CONVERGED:
            break
    own: Vector = weights[1:] / deviation
    return float(weights[0] - own @ mean), own
