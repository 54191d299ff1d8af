"""What was found of a claim in its passages, and what was not. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chat.grounding.support.claims import Claim
from chat.grounding.support.passages import Evidence, EvidencePassage
from chat.grounding.support.places import best_window, held_stems, missing_words, ranked_places
from chat.grounding.support.polarity import contradicts
from chat.grounding.support.similarity import Comparison
from chat.grounding.support.words import pairs

KNOWN_FROM = 0.7
"""A word that no passage holds counts by as much as its nearest token is less alike than this cosine."""
SAME_SUBJECT = 0.7
"""Share of a claim's weight in words that one sentence must hold before a `not` in one of the two counts against it."""


@dataclass(frozen=True, slots=True)
class Features:
    """Each is 0 where nothing speaks against the claim, and larger the more does.

    Shares, from 0 to 1: ``unfamiliar``, the mean over the claim's words of how far they are from anything said in the
    passages (at most KNOWN_FROM); ``unphrased``, the neighbouring words that nowhere stand together in them;
    ``scattered``, the weight in words that the best two sentences in a row lack.

    ``unknown_numbers`` and ``unknown_names`` count what no passage holds. ``contradicted`` says that the sentence that
    holds nearly the same words negates one that the claim does not, or the other way round.
    """

    unfamiliar: float
    unphrased: float
    scattered: float
    unknown_numbers: int
    unknown_names: int
    contradicted: bool


def features_of(
    claim: Claim, scope: Sequence[EvidencePassage], evidence: Evidence, comparison: Comparison | None
) -> Features:
    """What speaks against a claim in the passages of ``scope``; everything, where there is none.

    Without a ``comparison`` every word that no passage holds counts as unlike anything said there.
    """
    missing = missing_words(claim, scope)
    distances = [max(0.0, KNOWN_FROM - (comparison.nearest(word) if comparison else 0.0)) for word in missing]
    neighbours = list(pairs([word.stem for word in claim.words], 1))
    together = frozenset().union(*(passage.pairs for passage in scope))
    numbers = frozenset().union(*(passage.numbers for passage in scope))
    stems = held_stems(scope)
    return Features(
        unfamiliar=sum(distances) / len(claim.words),
        unphrased=sum(pair not in together for pair in neighbours) / len(neighbours) if neighbours else 0.0,
        scattered=1.0 - best_window(claim, scope, evidence).share,
        unknown_numbers=sum(not (values & numbers) for values in claim.numbers),
        unknown_names=len(set(claim.names) - stems),
        contradicted=_is_contradicted(claim, scope, evidence),
    )


def _is_contradicted(claim: Claim, scope: Sequence[EvidencePassage], evidence: Evidence) -> bool:
    nearest = next(iter(ranked_places(claim, scope, evidence)), None)
    if nearest is None or nearest.share < SAME_SUBJECT:
        return False
    own = frozenset(word.stem for word in claim.words)
    return contradicts(own, claim.text, nearest.sentence.stems, nearest.sentence.text)
