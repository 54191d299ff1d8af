"""Means with their intervals, losses beyond chance, and percentiles. PURE."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

RESAMPLES = 2000
# Values of several samples of a bootstrap, which are drawn together: 8 MB.
DRAWN_AT_ONCE = 1_000_000
SEED = 20_000
# 1,024 combinations of signs.
EXACT_FLIPS = 10
_TAILS_PERCENT = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over queries, and the bounds that hold it with 95 % confidence. All three agree for a single query."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f} {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Percentiles:
    p50: float
    p95: float


def bootstrap(
    estimate: float,
    resample: Callable[[np.random.Generator], float | None],
    *,
    resamples: int = RESAMPLES,
) -> Interval:
    """The estimate with the percentile bootstrap's 95 % interval.

    ``resample`` draws a sample and returns its figure; samples for which it returns None are left out. The seed is
    fixed, so the same values give the same interval.

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13.
    """
    random = np.random.default_rng(SEED)
    return _interval(estimate, [figure for _ in range(resamples) if (figure := resample(random)) is not None])


def _interval(estimate: float, figures: Sequence[float]) -> Interval:
    low, high = np.percentile(figures, _TAILS_PERCENT)
    return Interval(estimate, float(low), float(high))


def mean_interval(values: Sequence[float], *, resamples: int = RESAMPLES) -> Interval:
    """The mean of one value a query, with its 95 % interval over queries. Raises: ValueError when there is no value."""
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("A mean needs at least one query.")
    random = np.random.default_rng(SEED)
    rows = max(1, DRAWN_AT_ONCE // sample.size)
    figures: list[float] = []
    while len(figures) < resamples:
        drawn = random.integers(0, sample.size, (min(rows, resamples - len(figures)), sample.size))
        figures += sample[drawn].mean(axis=1).tolist()
    return _interval(float(sample.mean()), figures)


def chance_of_loss(differences: Sequence[float], *, resamples: int = RESAMPLES) -> float:
    """The chance of a mean as low as this, were each difference as likely to have the other sign; as a mid-p value.

    Lower means count whole and equal ones one half: where questions are found or not, many means are equal, and to
    count these whole would let most losses pass. At least 1 / 2^(n+1) for n differences that are not 0, so few of them
    never make a loss beyond chance, as they may in a bootstrap: drawn from one value alone, its mean does not vary. 1
    without any. Exact up to EXACT_FLIPS differences, beyond that from ``resamples`` random flips.

    Source: Smucker, Allan and Carterette, "A Comparison of Statistical Significance Tests for Information Retrieval
    Evaluation", CIKM 2007 (Fisher's randomization test); Lancaster, "Significance Tests in Discrete Distributions",
    Journal of the American Statistical Association 1961 (the mid-p value).
    """
    sample = np.asarray([value for value in differences if value], dtype=np.float64)
    if not sample.size:
        return 1.0
    if sample.size <= EXACT_FLIPS:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=sample.size)))
    else:
        signs = np.random.default_rng(SEED).choice((-1.0, 1.0), (resamples, sample.size))
    flipped, seen = signs @ sample, sample.sum()
    # Equal sums of the same numbers, added in another order, may differ in their last digits.
    equal = np.isclose(flipped, seen, rtol=0.0, atol=1e-9)
    return float(np.mean((flipped < seen) & ~equal) + np.mean(equal) / 2)


def is_loss(interval: Interval, differences: Sequence[float], allowed: float = 0.0) -> bool:
    """Whether a paired difference is a loss of more than ``allowed``, beyond chance.

    Its whole 95 % ``interval`` lies below, and the ``differences`` of the queries, which may leave out those of 0, have
    a `chance_of_loss` of no more than such an interval leaves on one side: the interval of a handful of queries is too
    narrow.
    """
    return interval.high < -allowed and chance_of_loss(differences) <= _TAILS_PERCENT[0] / 100


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that ``percent`` of them, 0 to 100, do not exceed, interpolated. Raises: ValueError for none."""
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("A percentile needs at least one value.")
    return float(np.percentile(sample, percent))


def percentiles(values: Sequence[float]) -> Percentiles:
    """Raises: ValueError for no values."""
    return Percentiles(percentile(values, 50), percentile(values, 95))


def rounded(figures: Interval | Percentiles, digits: int = 4) -> dict[str, float]:
    """The figures as JSON objects show them."""
    return {name: round(value, digits) for name, value in asdict(figures).items()}
