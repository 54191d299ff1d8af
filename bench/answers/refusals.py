"""How well questions without an answer are told from answerable ones, and weights fitted to do so. PURE.

Beside *adversarial* and *off-topic* questions (:mod:`bench.answers.sets`) there are *withheld* ones: answerable ones
whose document is taken out of the sources. The subject is there, the fact is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.groundedness.logistic import fit
from bench.statistics import auroc
from chat.answering.evidence import INTERCEPT, WEIGHTS

ANSWERABLE, ADVERSARIAL, WITHHELD, OFF_TOPIC = "answerable", "adversarial", "withheld", "off-topic"
WITHOUT_ANSWER = (ADVERSARIAL, WITHHELD, OFF_TOPIC)
WRONG_REFUSALS = (0.02, 0.04, 0.05, 0.10)
FEWEST = 5


@dataclass(frozen=True, slots=True)
class RefusalCase:
    """A question with the features of :class:`chat.answering.evidence.Evidence`.

    ``group`` is its article.
    """

    kind: str
    group: str
    features: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RefusalCurve:
    """``refused`` are the shares refused of questions without an answer, at each share of ``WRONG_REFUSALS``."""

    kind: str
    questions: int
    area: float
    refused: tuple[float, ...]


def logit(case: RefusalCase) -> float:
    """The site's own logit."""
    return INTERCEPT + sum(weight * case.features[name] for name, weight in WEIGHTS.items())


def split_by_group(cases: Iterable[RefusalCase]) -> tuple[list[RefusalCase], list[RefusalCase]]:
    """Every other article for tuning, the rest for judging; what belongs to none is for judging."""
    cases = list(cases)
    tuning = set(sorted({case.group for case in cases if case.group})[::2])
    return [case for case in cases if case.group in tuning], [case for case in cases if case.group not in tuning]


def fit_weights(cases: Sequence[RefusalCase]) -> tuple[float, dict[str, float]]:
    """The intercept and the weights of a logistic regression on the site's features."""
    answerable = np.array([case.kind == ANSWERABLE for case in cases])
    columns = np.array([[case.features[name] for name in WEIGHTS] for case in cases], np.float64)
    intercept, weights = fit(columns, answerable)
    return intercept, dict(zip(WEIGHTS, weights.tolist(), strict=True))


def curves(cases: Sequence[RefusalCase], scores: Sequence[float]) -> list[RefusalCurve]:
    """One curve for each kind of question without an answer of which there are enough."""
    scores_of = {
        kind: np.array([score for case, score in zip(cases, scores, strict=True) if case.kind == kind])
        for kind in (ANSWERABLE, *WITHOUT_ANSWER)
    }
    answerable = np.sort(scores_of[ANSWERABLE])
    found = []
    for kind in WITHOUT_ANSWER:
        own = scores_of[kind]
        if len(own) < FEWEST or len(answerable) < FEWEST:
            continue
        labels = [True] * len(answerable) + [False] * len(own)
        area = auroc(labels, [*answerable, *own])
        thresholds = [answerable[int(len(answerable) * share)] for share in WRONG_REFUSALS]
        found.append(RefusalCurve(kind, len(own), area, tuple(float((own < limit).mean()) for limit in thresholds)))
    return found
