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
from chat.grounding.evidence.answerability import INTERCEPT, WEIGHTS

ANSWERABLE, ADVERSARIAL, WITHHELD, OFF_TOPIC = "answerable", "adversarial", "withheld", "off-topic"
WITHOUT_ANSWER = (ADVERSARIAL, WITHHELD, OFF_TOPIC)
WRONG_REFUSALS = (0.02, 0.04, 0.05, 0.10)
FEWEST = 5
FITTED = ("closest", "gap", "coverage", "reach", "best_block")


@dataclass(frozen=True, slots=True)
class RefusalCase:
    """A question with the features of :class:`chat.grounding.evidence.answerability.Answerability`.

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


def logit(case: RefusalCase, similarity: str) -> float:
    """The site's logit, with "similarity" (of blocks with a value of the kind asked for) or "closest" (of any)."""
    features = {**case.features, "similarity": case.features[similarity]}
    return INTERCEPT + sum(weight * features[name] for name, weight in WEIGHTS.items())


def split_by_group(cases: Iterable[RefusalCase]) -> tuple[list[RefusalCase], list[RefusalCase]]:
    """Every other article for tuning, the rest for judging; what belongs to none is for judging."""
    cases = list(cases)
    tuning = set(sorted({case.group for case in cases if case.group})[::2])
    return [case for case in cases if case.group in tuning], [case for case in cases if case.group not in tuning]


def fitted_scores(tuning: Sequence[RefusalCase], judged: Sequence[RefusalCase]) -> list[float]:
    """Scores of ``judged`` by a logistic regression that is fitted on ``tuning``."""
    answerable = np.array([case.kind == ANSWERABLE for case in tuning])
    intercept, weights = fit(_columns(tuning), answerable)
    scores: list[float] = (_columns(judged) @ weights + intercept).tolist()
    return scores


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


def _columns(cases: Sequence[RefusalCase]) -> np.typing.NDArray[np.float64]:
    rows = [{**case.features, "gap": case.features["closest"] - case.features["similarity"]} for case in cases]
    return np.array([[row[name] for name in FITTED] for row in rows], np.float64)
