"""How good answers, their citations and their refusals are. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from evaluation.metrics import RESAMPLES, SEED, Interval

# A decimal is one word: "12.5" does not hold "5".
_TOKEN = re.compile(r"[^\W_]+(?:(?<=\d)[.,:](?=\d)[^\W_]+)*")
_ARTICLES = frozenset({"a", "an", "the", "de", "het", "een"})
_TAILS_PERCENT = (2.5, 97.5)


def holds_answer(text: str, answers: Iterable[str]) -> bool:
    """Whether ``text`` holds the words of one of the ``answers``, whole and one after another.

    Case, punctuation, white space and articles do not count, so that "39" is not held by "1939", but "World War II" is
    by "the World-War II". An answer of articles and punctuation alone is held by nothing.

    Source: the normalization of Rajpurkar, Zhang, Lopyrev, Liang, "SQuAD: 100,000+ Questions for Machine Comprehension
    of Text", EMNLP 2016, without its removal of punctuation inside words.
    """
    held = f" {_normalized(text)} "
    return any(wanted and f" {wanted} " in held for wanted in map(_normalized, answers))


def refusal_precision(
    unanswerable: Sequence[bool], answerable: Sequence[bool], *, resamples: int = RESAMPLES, seed: int = SEED
) -> Interval | None:
    """Of what was refused, the share that has no answer, as if of both kinds there were equally many questions.

    Each sequence says of its kind's questions whether they were refused: the precision is r / (r + w), of the share of
    the unanswerable ones refused and the share of the answerable ones. Weighted so, it does not depend on how many
    questions of each kind were at hand. With the percentile bootstrap's 95 % interval over the questions of both kinds.
    None when nothing was refused; samples in which nothing is are left out. Raises: ValueError for a kind without
    questions.
    """
    if not unanswerable or not answerable:
        raise ValueError("A precision needs questions of both kinds.")
    right, wrong = np.asarray(unanswerable, np.float64), np.asarray(answerable, np.float64)
    if not right.any() and not wrong.any():
        return None
    random = np.random.default_rng(seed)
    precisions = []
    for _ in range(resamples):
        of_right = right[random.integers(0, right.size, right.size)].mean()
        of_wrong = wrong[random.integers(0, wrong.size, wrong.size)].mean()
        if of_right or of_wrong:
            precisions.append(of_right / (of_right + of_wrong))
    low, high = np.percentile(precisions, _TAILS_PERCENT)
    return Interval(float(right.mean() / (right.mean() + wrong.mean())), float(low), float(high))


def _normalized(text: str) -> str:
    return " ".join(word for word in _TOKEN.findall(text.casefold()) if word not in _ARTICLES)
