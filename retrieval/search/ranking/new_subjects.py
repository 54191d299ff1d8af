"""Decide whether a question in a conversation begins a new subject. PURE."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.search.ranking.preferences import SHOWN, Strengths
from retrieval.search.understanding.dependent_questions import (
    LANGUAGES,
    begins_with_conjunction,
    has_few_words,
    points_back,
)
from retrieval.types import Candidate, Retriever

# The best passage of a new subject exceeds STRONG, and the best one of the joined search by MUCH_STRONGER; or all
# passages that the joined search shows are below WEAK (docs/adr/0045-follow-ups-are-searched-twice.md).
STRONG, MUCH_STRONGER, WEAK = 1.2, 0.8, 0.75


def is_new_subject(
    question: str, alone: Sequence[Candidate], joined: Sequence[Candidate], strengths: Strengths
) -> bool:
    """Return whether the question is independent of earlier questions.

    ``joined`` is the ranking with earlier questions. A question whose own words no shown passage answers, even in part,
    is independent if it is in a language whose pronouns are listed, and not too short.
    """
    if begins_with_conjunction(question) or points_back(question):
        return False
    scored = {candidate.chunk_id: candidate for candidate in alone}
    shown = [strengths.of(scored[candidate.chunk_id]) for candidate in joined[:SHOWN]]
    best = strengths.of(alone[0])
    if best > STRONG and best - shown[0] > MUCH_STRONGER:
        return True
    was_compared = any(Retriever.VECTOR in candidate.retrievers for candidate in alone)
    is_complete = strengths.language in LANGUAGES and not has_few_words(question)
    return was_compared and is_complete and max(shown) < WEAK
