"""Whether the arms have their planned sizes. If not, visitors were lost, and no result is valid. PURE."""

from __future__ import annotations

import math

# An alarm that is wrong once in a thousand experiments, however often it is looked at.
ALPHA = 0.001
_PRIOR_STRENGTH = 100.0


def evidence_of_imbalance(control: int, treatment: int, treatment_share: float) -> float:
    """How many times likelier these sizes are when the share of the treatment is not the planned one; 1 for nobody.

    A Bayes factor with a Beta prior around the planned share, which stays a test however often it is computed: the
    chance that it ever reaches 1 / ALPHA with the planned share is at most ALPHA. Only visitors that come one by one
    are counted. Raises: ValueError for a share outside (0, 1).

    Source: Lindon and Malek, "Anytime-Valid Inference for Multinomial Count Data", NeurIPS 2022.
    """
    if not 0 < treatment_share < 1:
        raise ValueError(f"A share of the treatment lies between 0 and 1, unlike {treatment_share}.")
    a, b = _PRIOR_STRENGTH * treatment_share, _PRIOR_STRENGTH * (1 - treatment_share)
    logarithm = (
        _log_beta(a + treatment, b + control)
        - _log_beta(a, b)
        - treatment * math.log(treatment_share)
        - control * math.log(1 - treatment_share)
    )
    return math.exp(min(logarithm, 700.0))


def is_imbalanced(control: int, treatment: int, treatment_share: float) -> bool:
    return evidence_of_imbalance(control, treatment, treatment_share) >= 1 / ALPHA


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
