"""Decide whether a question in a conversation begins a new subject, so that earlier questions are ignored."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.search.ranking.preferences import SHOWN, MatchStrengthMeasure
from retrieval.search.understanding.dependent_questions import (
    LANGUAGES,
    begins_with_conjunction,
    has_few_words,
    has_pronoun,
)
from retrieval.types import Candidate, Retriever

# A question is searched alone, and together with earlier questions (docs/adr/0045-follow-ups-are-searched-twice.md). It
# begins a new subject if the best passage of the first search has a strength above STRONG, which exceeds the best of
# the second search by more than MUCH_STRONGER. A complete question also begins one if the first passages of the second
# search are all weaker than WEAK.
STRONG, MUCH_STRONGER, WEAK = 1.2, 0.8, 0.75


def is_new_subject(
    question: str, alone: Sequence[Candidate], joined: Sequence[Candidate], strengths: MatchStrengthMeasure
) -> bool:
    """Return whether the question is independent of earlier questions.

    - ``alone``: the passages found for the question, best first.
    - ``joined``: the passages found for the question together with earlier questions, best first.
    - ``strengths``: an object that measures how well a passage answers the question.
    """
    if begins_with_conjunction(question) or has_pronoun(question):
        return False
    scored = {candidate.chunk_id: candidate for candidate in alone}
    shown = [strengths.measure_match_strength(scored[candidate.chunk_id]) for candidate in joined[:SHOWN]]
    best = strengths.measure_match_strength(alone[0])
    if best > STRONG and best - shown[0] > MUCH_STRONGER:
        return True
    was_compared = any(Retriever.VECTOR in candidate.retrievers for candidate in alone)
    is_complete = strengths.language in LANGUAGES and not has_few_words(question)
    return was_compared and is_complete and max(shown) < WEAK
