"""How often a gate refuses, on simulated runs: where nothing was lost, and where something was. PURE."""

from __future__ import annotations

import numpy as np

from evaluation.statistics import RESAMPLES, is_loss, mean_interval

SEED = 20


def refusal_rate(
    questions: int, *, differing: float, lost: float, repetitions: int, seed: int = SEED, resamples: int = RESAMPLES
) -> float:
    """The share of pairs of runs that a gate without an allowed loss refuses, in [0, 1].

    A share ``differing`` of the questions is found by one run alone, as often by the one as by the other; a share
    ``lost`` beside them by the baseline alone. Each question is drawn by itself, so both are expectations. Raises:
    ValueError for shares that add up to more than 1.
    """
    if differing + lost > 1:
        raise ValueError("More questions differ than there are.")
    random = np.random.default_rng(seed)
    chances = [differing / 2 + lost, 1 - differing - lost, differing / 2]
    refused = 0
    for _ in range(repetitions):
        differences = random.choice([-1.0, 0.0, 1.0], questions, p=chances).tolist()
        interval = mean_interval(differences, resamples=resamples)
        refused += is_loss(interval, differences)
    return refused / repetitions
