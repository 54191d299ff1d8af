"""Decide whether a question in a conversation begins a new subject. PURE."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.search.ranking.preferences import SHOWN, Strengths
from retrieval.search.understanding.dependent_questions import (
    LANGUAGES,
    begins_with_conjunction,
    has_few_words,
    has_pronoun,
)
from retrieval.types import Candidate, Retriever

# Limits for strengths of passages. A question begins a new subject in two cases. Either the best passage without
# earlier questions exceeds STRONG, and exceeds the best passage with them by MUCH_STRONGER. Or every shown passage is
# below WEAK (docs/adr/0045-follow-ups-are-searched-twice.md).
STRONG, MUCH_STRONGER, WEAK = 1.2, 0.8, 0.75


def is_new_subject(
    question: str, alone: Sequence[Candidate], joined: Sequence[Candidate], strengths: Strengths
) -> bool:
    """Return whether the question is independent of earlier questions.

    ``alone`` is the ranking for the question alone, ``joined`` for the question joined with earlier ones. A question
    that begins with a conjunction or contains a pronoun is never independent. If no shown passage answers the
    question's own words, it is independent if its language is in LANGUAGES and it is not too short.
    """
    if begins_with_conjunction(question) or has_pronoun(question):
        return False
    scored = {candidate.chunk_id: candidate for candidate in alone}
    shown = [strengths.measure(scored[candidate.chunk_id]) for candidate in joined[:SHOWN]]
    best = strengths.measure(alone[0])
    if best > STRONG and best - shown[0] > MUCH_STRONGER:
        return True
    was_compared = any(Retriever.VECTOR in candidate.retrievers for candidate in alone)
    is_complete = strengths.language in LANGUAGES and not has_few_words(question)
    return was_compared and is_complete and max(shown) < WEAK
