"""Groups of questions that the documents do not answer. PURE.

Questions about the same thing lie close together in the embedder's space. They are joined by average linkage: the two
groups whose questions are most alike on average become one, until no two groups are alike enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# Mean cosine below which two groups are kept apart. Chosen on the questions of SQuAD and XQuAD (Dutch), where a group
# ought to hold the questions of one paragraph; lower, and Dutch questions that share nothing but their language meet.
LEAST_LIKENESS = 0.6
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that was asked and not answered well, once."""

    answer: str
    question: str
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Gap:
    """Unanswered questions about one thing.

    ``questions`` holds each wording once, the most typical first; ``asked`` every time one of them was asked, latest
    first.
    """

    questions: tuple[str, ...]
    asked: tuple[Unanswered, ...]

    @property
    def size(self) -> int:
        """How often it was asked."""
        return len(self.asked)

    @property
    def examples(self) -> tuple[Unanswered, ...]:
        """The three most typical wordings, each as it was asked the last time."""
        last = {one.question: one for one in reversed(self.asked)}
        return tuple(last[question] for question in self.questions[:_EXAMPLES])

    @property
    def others(self) -> int:
        """The number of wordings beside the examples."""
        return max(0, len(self.questions) - _EXAMPLES)


def wordings(asked: Sequence[Unanswered]) -> list[str]:
    """Each question once, in alphabetical order; those that differ in case and spaces alone count as one."""
    return sorted({_folded(one.question) for one in asked})


def gaps(
    asked: Sequence[Unanswered],
    vectors: npt.NDArray[np.float32],
    least_likeness: float = LEAST_LIKENESS,
) -> list[Gap]:
    """The gaps, largest first, those of equal size by their most typical question; every question in exactly one.

    ``vectors`` are unit vectors, shape (len(wordings), dimension), in the order of :func:`wordings`. The order of
    ``asked`` does not matter. Empty without questions. Raises: ValueError when vectors are missing.
    """
    words = wordings(asked)
    if len(vectors) != len(words):
        raise ValueError(f"{len(words)} questions need as many vectors, not {len(vectors)}.")
    times: dict[str, list[Unanswered]] = {}
    for one in asked:
        times.setdefault(_folded(one.question), []).append(one)
    found = []
    for members in clusters(vectors, least_likeness):
        typical = vectors[list(members)] @ vectors[list(members)].mean(axis=0)
        ranked = np.lexsort((members, -np.round(typical.astype(np.float64), 6)))
        central = [members[place] for place in ranked]
        inside = sorted(
            (one for index in members for one in times[words[index]]),
            key=lambda one: (one.asked_at, one.answer),
            reverse=True,
        )
        # As it was typed the last time, not folded.
        typed = [max(times[words[index]], key=lambda one: (one.asked_at, one.answer)).question for index in central]
        found.append(Gap(tuple(typed), tuple(inside)))
    return sorted(found, key=lambda gap: (-gap.size, gap.questions))


def clusters(vectors: npt.NDArray[np.float32], least_likeness: float) -> list[tuple[int, ...]]:
    """Groups of row numbers, each ascending, by their first; every row is in exactly one.

    Average linkage: the mean cosine between two groups that are joined is at least ``least_likeness``. Of equally alike
    pairs the one with the lowest rows is joined first, so the result is determined by the vectors and their order.

    Source: Sokal and Michener, "A Statistical Method for Evaluating Systematic Relationships", 1958 (UPGMA).
    """
    number = len(vectors)
    if number == 0:
        return []
    members: list[list[int]] = [[index] for index in range(number)]
    # Rounded, so that the order of sums inside the product of matrices decides no tie.
    likeness = np.round((vectors @ vectors.T).astype(np.float64), 6)
    np.fill_diagonal(likeness, -np.inf)
    while True:
        first, second = divmod(int(likeness.argmax()), number)
        if likeness[first, second] < least_likeness:
            return sorted(tuple(sorted(group)) for group in members if group)
        sizes = len(members[first]), len(members[second])
        joined = (sizes[0] * likeness[first] + sizes[1] * likeness[second]) / sum(sizes)
        members[first] += members[second]
        members[second] = []
        likeness[first] = likeness[:, first] = joined
        likeness[second] = likeness[:, second] = -np.inf
        likeness[first, first] = -np.inf


def _folded(question: str) -> str:
    return " ".join(question.split()).casefold()
