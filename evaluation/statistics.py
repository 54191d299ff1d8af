"""Metrics of rankings, means with intervals, significance tests for lower means, and percentiles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np

# A ranking has document ids, best first, each at most once. A document with a grade above 0 is relevant. Metrics are
# from 0 to 1, and 0 without a relevant document.

Identifier = TypeVar("Identifier", bound=Hashable)

TOP_K = 50


def ndcg(ranking: Sequence[Identifier], grades: Mapping[Identifier, int], k: int) -> float:
    """Return the discounted gain of the first ``k`` documents, divided by the best possible value.

    The gain of a document is its grade, not 2^grade - 1; at rank r it is divided by log2(r + 1), as in trec_eval's
    `ndcg_cut`. Judged documents count even if they are not in the corpus. Raises: ValueError for k below 1, or for a
    document that is ranked twice. Source: Järvelin and Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques",
    ACM TOIS 2002.
    """
    head = _cut_ranking(ranking, k)
    best = _sum_discounted_gains(sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:k])
    return _sum_discounted_gains([max(0, grades.get(document, 0)) for document in head]) / best if best else 0.0


def hit(ranking: Sequence[Identifier], grades: Mapping[Identifier, int], k: int) -> float:
    """Return 1 if a relevant document is among the first ``k``, else 0. Raises: the errors of :func:`ndcg`."""
    return float(any(grades.get(document, 0) > 0 for document in _cut_ranking(ranking, k)))


def recall(ranking: Sequence[Identifier], grades: Mapping[Identifier, int], k: int) -> float:
    """Return the share of all relevant documents that are among the first ``k``. Raises: the errors of :func:`ndcg`."""
    relevant = sum(grade > 0 for grade in grades.values())
    found = sum(grades.get(document, 0) > 0 for document in _cut_ranking(ranking, k))
    return found / relevant if relevant else 0.0


def reciprocal_rank(ranking: Sequence[Identifier], grades: Mapping[Identifier, int], k: int) -> float:
    """Return 1 / rank of the first relevant document, or 0 if none is among the first ``k``.

    Its mean over queries is MRR@k. Raises: the errors of :func:`ndcg`. Source: Voorhees, "The TREC-8 Question Answering
    Track Report", TREC 1999.
    """
    for rank, document in enumerate(_cut_ranking(ranking, k), start=1):
        if grades.get(document, 0) > 0:
            return 1.0 / rank
    return 0.0


def _cut_ranking(ranking: Sequence[Identifier], k: int) -> Sequence[Identifier]:
    if k < 1:
        raise ValueError(f"A ranking is cut at 1 or later, not at {k}.")
    head = ranking[:k]
    if len(set(head)) != len(head):
        raise ValueError("A document is ranked twice.")
    return head


def _sum_discounted_gains(gains: Sequence[int]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


METRICS: Mapping[str, Callable[[Sequence[str], Mapping[str, int]], float]] = {
    "ndcg@10": lambda ranking, grades: ndcg(ranking, grades, 10),
    "hit@10": lambda ranking, grades: hit(ranking, grades, 10),
    "recall@50": lambda ranking, grades: recall(ranking, grades, 50),
    "mrr@10": lambda ranking, grades: reciprocal_rank(ranking, grades, 10),
}


@dataclass(frozen=True, slots=True)
class ExpectedPassageChunks:
    """An expected passage, and the current chunks (parts of documents) that contain its text.

    ``whole``: every part of the document counts as the passage. If ``document_id`` is None, the document was deleted.
    """

    key: int
    grade: int
    document_id: int | None
    chunk_ids: frozenset[int] = frozenset()
    whole: bool = False

    @property
    def is_resolved(self) -> bool:
        return self.document_id is not None and (self.whole or bool(self.chunk_ids))


@dataclass(frozen=True, slots=True)
class JudgedRanking:
    """The ranking of one question, with the grades of its items.

    ``ranks`` maps the key of an expected passage to its rank, or None.
    """

    ranking: tuple[str, ...]
    grades: dict[str, int]
    ranks: dict[int, int | None]


def build_judged_ranking(
    found: Sequence[tuple[int, int]], expectations: Sequence[ExpectedPassageChunks]
) -> JudgedRanking:
    """Return the ranking of the ``found`` pairs of chunk id and document id (best first), with grades.

    All chunks of an expected passage or document become one item, at the rank of the best chunk. An expected passage
    that no longer exists is not found.
    """
    unit_of_chunk: dict[int, str] = {}
    unit_of_document: dict[int, str] = {}
    unit_of_key: dict[int, str] = {}
    grades: dict[str, int] = {}
    # Whole documents come first, so that expected passages of the same document get the unit of this document.
    for one in sorted(expectations, key=lambda one: not one.whole):
        unit = f"expected {one.key}"
        if not one.is_resolved:
            pass
        elif one.whole and one.document_id is not None:
            unit = unit_of_document.setdefault(one.document_id, unit)
        elif one.document_id in unit_of_document:
            unit = unit_of_document[one.document_id]
        else:
            unit = next((unit_of_chunk[chunk] for chunk in sorted(one.chunk_ids) if chunk in unit_of_chunk), unit)
            for chunk in one.chunk_ids:
                unit_of_chunk.setdefault(chunk, unit)
        unit_of_key[one.key] = unit
        grades[unit] = max(one.grade, grades.get(unit, 0))
    by_document = all(one.whole for one in expectations)
    ranking: dict[str, None] = {}
    for chunk, document in found:
        other = f"document {document}" if by_document else f"chunk {chunk}"
        ranking.setdefault(unit_of_chunk.get(chunk) or unit_of_document.get(document, other))
    rank_of_unit = {unit: rank for rank, unit in enumerate(ranking, start=1)}
    ranks = {key: rank_of_unit.get(unit) for key, unit in unit_of_key.items()}
    return JudgedRanking(tuple(ranking), grades, ranks)


RESAMPLES = 2000
DRAWN_AT_ONCE = 1_000_000
SEED = 20_000
EXACT_FLIPS = 10
_TAILS_PERCENT = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over queries with its 95 % interval. All three numbers are equal for a single query."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f} {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Percentiles:
    p50: float
    p95: float


def mean_interval(values: Sequence[float], *, resamples: int = RESAMPLES) -> Interval:
    """Return the mean of one value per query, with its 95 % interval by the percentile bootstrap over queries.

    The seed is fixed. Raises: ValueError without a value. Source: Efron and Tibshirani, "An Introduction to the
    Bootstrap", 1993, chapter 13.
    """
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("A mean needs at least one query.")
    random = np.random.default_rng(SEED)
    rows = max(1, DRAWN_AT_ONCE // sample.size)
    figures: list[float] = []
    while len(figures) < resamples:
        drawn = random.integers(0, sample.size, (min(rows, resamples - len(figures)), sample.size))
        figures += sample[drawn].mean(axis=1).tolist()
    low, high = np.percentile(figures, _TAILS_PERCENT)
    return Interval(float(sample.mean()), float(low), float(high))


def compute_chance_of_loss(differences: Sequence[float], *, resamples: int = RESAMPLES) -> float:
    """Return the probability that random signs of the ``differences`` make their mean lower. Ties count a half.

    The result is exact up to EXACT_FLIPS differences; otherwise it is estimated from ``resamples`` random choices of
    signs. For n differences that are not 0, it is at least 1 / 2^(n+1); for n = 0 it is 1. Sources: Smucker, Allan and
    Carterette, "A Comparison of Statistical Significance Tests for Information Retrieval Evaluation", CIKM 2007
    (Fisher's randomization test); Lancaster, "Significance Tests in Discrete Distributions", Journal of the American
    Statistical Association 1961 (the mid-p value).
    """
    sample = np.asarray([value for value in differences if value], dtype=np.float64)
    if not sample.size:
        return 1.0
    if sample.size <= EXACT_FLIPS:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=sample.size)))
    else:
        signs = np.random.default_rng(SEED).choice((-1.0, 1.0), (resamples, sample.size))
    flipped, seen = signs @ sample, sample.sum()
    equal = np.isclose(flipped, seen, rtol=0.0, atol=1e-9)
    return float(np.mean((flipped < seen) & ~equal) + np.mean(equal) / 2)


def is_significant_loss(interval: Interval, differences: Sequence[float], allowed: float = 0.0) -> bool:
    """Return whether there is a loss of more than ``allowed`` that chance does not explain.

    The whole 95 % ``interval`` must be below ``-allowed``, and `compute_chance_of_loss` at most 2.5 %.
    """
    return interval.high < -allowed and compute_chance_of_loss(differences) <= _TAILS_PERCENT[0] / 100


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which ``percent`` % of the values are, interpolated. Raises: ValueError without values."""
    sample = np.asarray(values, dtype=np.float64)
    if not sample.size:
        raise ValueError("A percentile needs at least one value.")
    return float(np.percentile(sample, percent))


def percentiles(values: Sequence[float]) -> Percentiles:
    return Percentiles(percentile(values, 50), percentile(values, 95))


def round_figures(figures: Interval | Percentiles, digits: int = 4) -> dict[str, float]:
    return {name: round(value, digits) for name, value in asdict(figures).items()}
