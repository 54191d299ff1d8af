"""How good a ranking is, and how sure one can be of it. PURE.

A ranking is the identifiers of documents, best first, each at most once. Judgements give each judged document a grade;
a document is relevant when its grade is above 0, and one without a judgement counts as not relevant. Every metric lies
in [0, 1], is better when higher, and is 0 for an empty ranking and for a query without a relevant document.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Identifier = TypeVar("Identifier", bound=Hashable)

RESAMPLES = 2000
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


def ndcg(ranking: Sequence[Identifier], grades: Mapping[Identifier, int], k: int) -> float:
    """Discounted gain of the first ``k`` over that of the best possible first ``k``, the judged documents by grade.

    The gain is the grade itself, as in trec_eval's `ndcg_cut` and in BEIR's published figures, not 2^grade - 1; a grade
    below 0 gains nothing. The gain at rank r is divided by log2(r + 1). Judged documents that the corpus lacks count in
    the best possible ranking. Raises: ValueError for k below 1, or a document ranked twice.

    Source: Järvelin and Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", ACM TOIS 2002.
    """
    head = _head(ranking, k)
    best = _discounted(sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k])
    return _discounted([max(0, grades.get(document, 0)) for document in head]) / best if best else 0.0


def hit(ranking: Sequence[Identifier], grades: Mapping[Identifier, int], k: int) -> float:
    """1 when a relevant document is among the first ``k``, else 0. Raises: as :func:`ndcg`."""
    return float(any(grades.get(document, 0) > 0 for document in _head(ranking, k)))


def recall(ranking: Sequence[Identifier], grades: Mapping[Identifier, int], k: int) -> float:
    """Share of all relevant documents that are among the first ``k``; below 1 for more than ``k`` of them.

    Raises: as :func:`ndcg`.
    """
    relevant = sum(grade > 0 for grade in grades.values())
    found = sum(grades.get(document, 0) > 0 for document in _head(ranking, k))
    return found / relevant if relevant else 0.0


def reciprocal_rank(ranking: Sequence[Identifier], grades: Mapping[Identifier, int], k: int) -> float:
    """1 / rank of the first relevant document, 0 when none is among the first ``k``; its mean over queries is MRR@k.

    Raises: as :func:`ndcg`.

    Source: Voorhees, "The TREC-8 Question Answering Track Report", TREC 1999.
    """
    for rank, document in enumerate(_head(ranking, k), start=1):
        if grades.get(document, 0) > 0:
            return 1.0 / rank
    return 0.0


def mean_interval(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """The mean of one value a query, with the percentile bootstrap's 95 % interval over queries.

    The seed is fixed, so the same values give the same interval. Raises: ValueError when there is no value.

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13.
    """
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("A mean needs at least one query.")
    random = np.random.default_rng(seed)
    means = np.array([sample[random.integers(0, sample.size, sample.size)].mean() for _ in range(resamples)])
    low, high = np.percentile(means, _TAILS_PERCENT)
    return Interval(float(sample.mean()), float(low), float(high))


def paired_difference(
    values: Sequence[float], baseline: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval:
    """By how much ``values`` exceed ``baseline`` on the same queries in the same order, with its 95 % interval.

    Queries are drawn in pairs, which takes their own difficulty out of the comparison: an interval that does not hold 0
    is a difference beyond chance. Raises: ValueError for lengths that differ, or none.

    Source: Sakai, "Evaluating Evaluation Metrics based on the Bootstrap", SIGIR 2006.
    """
    if len(values) != len(baseline):
        raise ValueError(f"Only the same queries can be compared, not {len(values)} with {len(baseline)}.")
    return mean_interval(
        [value - other for value, other in zip(values, baseline, strict=True)], resamples=resamples, seed=seed
    )


def chance_of_loss(differences: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED) -> float:
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
        signs = np.random.default_rng(seed).choice((-1.0, 1.0), (resamples, sample.size))
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


def auroc(positive: Sequence[bool], scores: Sequence[float]) -> float:
    """The probability that a positive has a higher score than a negative, ties counting one half.

    0.5 for scores that tell nothing. Raises: ValueError for lengths that differ, or without a positive and a negative.

    Source: Hanley and McNeil, "The Meaning and Use of the Area under a Receiver Operating Characteristic Curve",
    Radiology 1982.
    """
    if len(positive) != len(scores):
        raise ValueError(f"Every score needs its label: there are {len(scores)} and {len(positive)}.")
    labels = np.asarray(positive, dtype=bool)
    positives, negatives = int(labels.sum()), int((~labels).sum())
    if not positives or not negatives:
        raise ValueError("An area under the curve needs a positive and a negative.")
    _, place, counts = np.unique(np.asarray(scores, np.float64), return_inverse=True, return_counts=True)
    # The mean rank of equal scores, from 1.
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def auroc_interval(
    positive: Sequence[bool], scores: Sequence[float], *, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval:
    """The area, with the percentile bootstrap's 95 % interval; positives and negatives are drawn each among their own.

    Raises: as :func:`auroc`.
    """
    area = auroc(positive, scores)
    labels, values = np.asarray(positive, dtype=bool), np.asarray(scores, np.float64)
    yes, no = values[labels], values[~labels]
    drawn_labels = np.repeat([True, False], [yes.size, no.size]).tolist()
    random = np.random.default_rng(seed)
    areas = []
    for _ in range(resamples):
        drawn = np.concatenate([random.choice(yes, yes.size), random.choice(no, no.size)])
        areas.append(auroc(drawn_labels, drawn.tolist()))
    low, high = np.percentile(areas, _TAILS_PERCENT)
    return Interval(area, float(low), float(high))


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that ``percent`` of them, 0 to 100, do not exceed, interpolated. Raises: ValueError for none."""
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("A percentile needs at least one value.")
    return float(np.percentile(sample, percent))


def _head(ranking: Sequence[Identifier], k: int) -> Sequence[Identifier]:
    if k < 1:
        raise ValueError(f"A ranking is cut at 1 or later, not at {k}.")
    head = ranking[:k]
    if len(set(head)) != len(head):
        raise ValueError("A document is ranked twice.")
    return head


def _discounted(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


# Chunks asked of each search: what recall@50 needs.
TOP_K = 50

METRICS: Mapping[str, Callable[[Sequence[str], Mapping[str, int]], float]] = {
    "ndcg@10": lambda ranking, grades: ndcg(ranking, grades, 10),
    "hit@10": lambda ranking, grades: hit(ranking, grades, 10),
    "recall@50": lambda ranking, grades: recall(ranking, grades, 50),
    "mrr@10": lambda ranking, grades: reciprocal_rank(ranking, grades, 10),
}
