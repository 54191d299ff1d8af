"""Where in the passages a claim's words stand. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chat.grounding.support.claims import Claim
from chat.grounding.support.passages import Evidence, EvidencePassage, EvidenceSentence


@dataclass(frozen=True, slots=True)
class Place:
    """A sentence of a passage, and the share of a claim's weight in words that it holds, 0 to 1."""

    passage: EvidencePassage
    sentence: EvidenceSentence
    share: float


@dataclass(frozen=True, slots=True)
class Window:
    """Two sentences in a row (or one, at a passage's end), and the share of the claim's weight that they hold."""

    stems: frozenset[str]
    numbers: frozenset[str]
    share: float


def held_stems(scope: Sequence[EvidencePassage]) -> frozenset[str]:
    """All that the passages hold, titles included."""
    return frozenset().union(*(passage.stems for passage in scope))


def missing_words(claim: Claim, scope: Sequence[EvidencePassage]) -> list[int]:
    """The numbers, among the claim's words, of those that the passages do not hold."""
    held = held_stems(scope)
    return [number for number, word in enumerate(claim.words) if word.stem not in held]


def ranked_places(claim: Claim, scope: Sequence[EvidencePassage], evidence: Evidence) -> list[Place]:
    """All sentences of the scope, those first that hold most of the claim's weight; ties in the order of the text."""
    weights = _weights(claim, evidence)
    total = sum(weights.values())
    places = [
        Place(passage, sentence, sum(weights[stem] for stem in weights.keys() & sentence.stems) / total)
        for passage in scope
        for sentence in passage.sentences
    ]
    return sorted(places, key=lambda place: -place.share)


def best_window(claim: Claim, scope: Sequence[EvidencePassage], evidence: Evidence) -> Window:
    """The window that holds most of the claim's weight, its passage's title included; an empty one if none holds any.

    Two sentences, because what one calls by its name the next calls "it". The first of equals.
    """
    weights = _weights(claim, evidence)
    total = sum(weights.values())
    best = Window(frozenset(), frozenset(), 0.0)
    for passage in scope:
        for number, sentence in enumerate(passage.sentences):
            window = (sentence, *passage.sentences[number + 1 : number + 2])
            stems = passage.title_stems.union(*(each.stems for each in window))
            share = sum(weights[stem] for stem in weights.keys() & stems) / total
            if share > best.share:
                numbers = passage.title_numbers.union(*(each.numbers for each in window))
                best = Window(stems, numbers, share)
    return best


def _weights(claim: Claim, evidence: Evidence) -> dict[str, float]:
    return {word.stem: evidence.weight(word.stem) for word in claim.words}
