"""From what was found and missed to the probability that a sentence is borne out. PURE."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from chat.grounding.support.features import Features


class Reason(StrEnum):
    """What speaks against a sentence. ``ELSEWHERE``: another source than the cited one bears it out."""

    NUMBER = "number"
    NAME = "name"
    NEGATION = "negation"
    WORDS = "words"
    UNCITED = "uncited"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Weights:
    """Of a logistic model of "this sentence is not borne out", by the features that are shares."""

    intercept: float
    unfamiliar: float
    unphrased: float
    scattered: float


# Fitted by logistic regression on the 2,228 sentences with a claim of the 408 answers of RAGTruth's question answering
# half (Niu et al., "RAGTruth: A Hallucination Corpus", ACL 2024) that the project tunes on, 8 % of them marked by
# people: `manage.py evaluate_groundedness FILE --cross-validate` fits them again and says how they do on answers that
# they were not fitted on.
WITH_TOKENS = Weights(-5.249, 5.466, 3.008, 0.902)
WORDS_ONLY = Weights(-5.678, 0.676, 3.116, 2.043)

# How likely a sentence is wrong that is fine but for this. On the same sentences people marked 62 % of those with an
# unknown number, and 28 % of those with an unknown name; names count a little more, so that a name alone falls below
# the threshold. Contradictions are too rare there to tell: 3 in 1,000 good sentences seem to contradict their source,
# and so do 94 of 100 that a `not` was put into.
UNKNOWN_NUMBER = 0.6
UNKNOWN_NAME = 0.35
CONTRADICTED = 0.4

THRESHOLD = 0.7
"""A sentence with less support is marked: on the sentences above 46 % of the bad ones (42 % when the weights are fitted
on others) and 7 % of the good. A number, a name or a `not` that the sources do not bear out is always below."""


def plain_support(features: Features, weights: Weights) -> float:
    """The probability that a sentence is borne out as far as its words tell, numbers, names and negations aside."""
    against = (
        weights.intercept
        + weights.unfamiliar * features.unfamiliar
        + weights.unphrased * features.unphrased
        + weights.scattered * features.scattered
    )
    return 1.0 / (1.0 + math.exp(against))


def support(features: Features, weights: Weights) -> float:
    """The probability that a sentence is borne out, 0 to 1; its reasons for doubt count as independent (noisy-or)."""
    remaining = plain_support(features, weights)
    if features.unknown_numbers:
        remaining *= 1.0 - UNKNOWN_NUMBER
    if features.unknown_names:
        remaining *= 1.0 - UNKNOWN_NAME
    if features.contradicted:
        remaining *= 1.0 - CONTRADICTED
    return remaining


def reasons(features: Features, weights: Weights) -> tuple[Reason, ...]:
    """What speaks against a sentence, the most telling first; none for one that is supported."""
    found = [
        (bool(features.unknown_numbers), Reason.NUMBER),
        (features.contradicted, Reason.NEGATION),
        (bool(features.unknown_names), Reason.NAME),
        (plain_support(features, weights) < THRESHOLD, Reason.WORDS),
    ]
    named = tuple(reason for holds, reason in found if holds)
    if not named and support(features, weights) < THRESHOLD:
        return (Reason.WORDS,)
    return named


def groundedness(supports: Iterable[float]) -> float:
    """The probability that every sentence of an answer is borne out: the product; 1 for an answer that claims nothing.

    One bad sentence spoils an answer, and a long one has more chances to hold one: the mean over sentences orders
    answers worse (AUROC 0.80 against 0.83), the worst sentence alone does too (0.81).
    """
    return math.prod(supports)
