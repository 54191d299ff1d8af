from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evaluation.statistics import RESAMPLES, SEED, Interval, mean_interval


def bootstrap(
    estimate: float, resample: Callable[[np.random.Generator], float | None], *, resamples: int = RESAMPLES
) -> Interval:
    """Return ``estimate`` with its 95 % bootstrap interval. For means, use `mean_interval`.

    ``resample`` draws a sample and returns its estimate. If it returns None, the sample is left out.
    """
    random = np.random.default_rng(SEED)
    low, high = np.percentile([one for _ in range(resamples) if (one := resample(random)) is not None], (2.5, 97.5))
    return Interval(estimate, float(low), float(high))


def paired_difference(values: Sequence[float], baseline: Sequence[float], *, resamples: int = RESAMPLES) -> Interval:
    """Return the mean difference of two methods on the same queries, with its 95 % interval.

    Samples are drawn from the differences of single queries, so a query that is hard for both methods does not widen
    the interval. If the interval does not contain 0, the difference is beyond chance. Raises: ValueError if the lengths
    differ, or if there are no values. Source: Sakai, "Evaluating Evaluation Metrics based on the Bootstrap", SIGIR
    2006.
    """
    if len(values) != len(baseline):
        raise ValueError(f"Only the same queries can be compared, not {len(values)} with {len(baseline)}.")
    return mean_interval([value - other for value, other in zip(values, baseline, strict=True)], resamples=resamples)


def auroc(positive: Sequence[bool], scores: Sequence[float]) -> float:
    """Return the probability that a positive has a higher score than a negative (AUROC); ties count a half.

    It is 0.5 for scores without information. Raises: ValueError for different lengths, or without a positive and a
    negative. Source: Hanley and McNeil, "The Meaning and Use of the Area under a Receiver Operating Characteristic
    Curve", Radiology 1982.
    """
    if len(positive) != len(scores):
        raise ValueError(f"Every score needs its label: there are {len(scores)} and {len(positive)}.")
    labels = np.asarray(positive, dtype=bool)
    positives, negatives = int(labels.sum()), int((~labels).sum())
    if not positives or not negatives:
        raise ValueError("An area under the curve needs a positive and a negative.")
    _, place, counts = np.unique(np.asarray(scores, np.float64), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def auroc_interval(positive: Sequence[bool], scores: Sequence[float], *, resamples: int = RESAMPLES) -> Interval:
    """Return the AUROC with its 95 % bootstrap interval. Positives and negatives are drawn separately.

    Raises: the errors of :func:`auroc`.
    """
    labels, values = np.asarray(positive, dtype=bool), np.asarray(scores, np.float64)
    yes, no = values[labels], values[~labels]
    drawn_labels = np.repeat([True, False], [yes.size, no.size]).tolist()

    def resample(random: np.random.Generator) -> float:
        drawn = np.concatenate([random.choice(yes, yes.size), random.choice(no, no.size)])
        return auroc(drawn_labels, drawn.tolist())

    return bootstrap(auroc(positive, scores), resample, resamples=resamples)


def refusal_precision(
    unanswerable: Sequence[bool], answerable: Sequence[bool], *, resamples: int = RESAMPLES
) -> Interval | None:
    """Return the precision of refusals: the share of refused questions that are unanswerable.

    The arguments have one value for each question: True if it was refused. Both kinds of questions have equal weight:
    the precision is r / (r + w), where r is the share of unanswerable questions that were refused, and w the share of
    answerable ones. The 95 % bootstrap interval leaves out samples without a refusal. The result is None if no question
    was refused. Raises: ValueError if there are no questions of one kind.
    """
    if not unanswerable or not answerable:
        raise ValueError("A precision needs questions of both kinds.")
    right, wrong = np.asarray(unanswerable, np.float64), np.asarray(answerable, np.float64)
    if not right.any() and not wrong.any():
        return None

    def resample(random: np.random.Generator) -> float | None:
        of_right = right[random.integers(0, right.size, right.size)].mean()
        of_wrong = wrong[random.integers(0, wrong.size, wrong.size)].mean()
        return float(of_right / (of_right + of_wrong)) if of_right or of_wrong else None

    precision = float(right.mean() / (right.mean() + wrong.mean()))
    return bootstrap(precision, resample, resamples=resamples)
