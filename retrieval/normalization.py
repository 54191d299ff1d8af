"""Convert the scores of different retrievers to one scale."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping


def compute_standard_deviation(scores: Collection[float]) -> float:
    """Return the population standard deviation; 0 if there are no scores or all are equal."""
    if not scores:
        return 0.0
    # fsum is exact, so the order of the scores has no effect.
    mean = math.fsum(scores) / len(scores)
    return math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))


def scale_to_unit_interval(scores: Mapping[int, float]) -> dict[int, float]:
    """Scale scores to [0, 1]: the highest is 1, the lowest 0. Equal scores are all 1; {} gives {}.

    Source: Lee, "Analyses of Multiple Evidence Combination", SIGIR 1997.
    """
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 1.0)
    return {key: (score - low) / (high - low) for key, score in scores.items()}


def compute_z_scores(scores: Mapping[int, float]) -> dict[int, float]:
    """Return (score - mean) / population standard deviation. Equal scores are all 0; {} gives {}.

    Source: Montague and Aslam, "Relevance Score Normalization for Metasearch", CIKM 2001.
    """
    if not scores:
        return {}
    mean = math.fsum(scores.values()) / len(scores)
    deviation = compute_standard_deviation(scores.values())
    if deviation <= 1e-12 * max(1.0, abs(mean)):
        return dict.fromkeys(scores, 0.0)
    return {key: (score - mean) / deviation for key, score in scores.items()}
