"""Rank passages in the question's language before others.

A passage in another language does not contain the question's words. It is judged by the closeness of its vector alone,
multiplied by ACROSS_LANGUAGES.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from retrieval.types import AppliedBoost, Candidate, Retriever

if TYPE_CHECKING:
    from retrieval.index.closeness import Calibration

PASSABLE, PASSABLE_CLOSENESS = 1.0, 0.5
SHOWN = 8
ACROSS_LANGUAGES = 4.0


@dataclass(frozen=True, slots=True)
class MatchStrengthMeasure:
    """The data to measure a passage's strength: how well it answers the question.

    The strength is usually the passage's closeness (0 if unrelated, 1 for a typical answer) plus the share of the
    question's words that it contains (0 to 1). ``shares`` has these shares, ``languages`` the languages, by chunk id.
    """

    calibration: Calibration
    language: str
    shares: Mapping[int, float]
    languages: Mapping[int, str]

    def is_in_other_language(self, candidate: Candidate) -> bool:
        """Return whether the passage's language differs from the question's; False if either is unknown."""
        found = self.languages.get(candidate.chunk_id, "")
        return bool(found and self.language) and found != self.language

    def measure_closeness(self, candidate: Candidate) -> float:
        said = candidate.retrievers.get(Retriever.VECTOR)
        return self.calibration.convert_to_closeness(said.score) if said is not None and said.score is not None else 0.0

    def measure_match_strength(self, candidate: Candidate) -> float:
        closeness = self.measure_closeness(candidate)
        strength = closeness + self.shares.get(candidate.chunk_id, 0.0)
        if self.calibration.across_languages and self.is_in_other_language(candidate):
            return max(strength, ACROSS_LANGUAGES * closeness)
        return strength


def put_own_language_first(ranked: Sequence[Candidate], strengths: MatchStrengthMeasure) -> list[Candidate]:
    """Move passages in other languages behind good passages in the question's language, and return all.

    Passages with a boost are not moved.
    """
    foreign = [each for each in ranked if strengths.is_in_other_language(each) and not each.boosts]
    closest = max(map(strengths.measure_closeness, foreign), default=math.inf)
    own = [
        each.score
        for each in ranked[:SHOWN]
        if strengths.languages.get(each.chunk_id) == strengths.language
        and (closeness := strengths.measure_closeness(each)) >= PASSABLE_CLOSENESS
        and (strengths.measure_match_strength(each) >= PASSABLE or closeness >= closest)
    ]
    lead = max((each.score for each in foreign), default=-math.inf) - min(own, default=math.inf)
    if lead < 0:
        return list(ranked)
    # This lowers the best foreign passage just below the lowest score in `own`. The small extra prevents equal scores
    # after rounding.
    loss = -lead * (1 + 1e-9) - 1e-9
    behind = {each.chunk_id for each in foreign}
    return sorted(
        (_lower_score_for_language(each, loss, strengths) if each.chunk_id in behind else each for each in ranked),
        key=_build_sort_key,
    )


def _lower_score_for_language(candidate: Candidate, loss: float, strengths: MatchStrengthMeasure) -> Candidate:
    boost = AppliedBoost(f"language={strengths.languages[candidate.chunk_id]}", loss)
    return replace(candidate, score=math.fsum([candidate.score, loss]), boosts=(boost,))


def _build_sort_key(candidate: Candidate) -> tuple[float, int]:
    return -candidate.score, candidate.chunk_id
