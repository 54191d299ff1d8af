"""How far the units of the context hold the words of a question, in their own text or in what stands above it. PURE.

The question's weight is that of its words, the rarer the heavier. In Dutch a compound holds the words it is made of in
part, and they hold it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from chat.grounding.evidence.units import QuotableUnit
from chat.grounding.words import stem_set, stem_weights, stems
from retrieval.text.compounds import DUTCH, has_part
from retrieval.text.language import detect_language

# What a word of the question is worth in the heading right above a block, and in the titles further up.
HEADING_SHARE = 0.8
TITLE_SHARE = 0.5
# What a word of the question is worth in a compound of it; a part of a compound, by its share of the letters.
COMPOUND_SHARE = 0.8
# What a Dutch verb leaves behind where it is separated: "meenemen", "wat neemt u mee". Others are words of their own.
PARTICLES = ("mee", "samen", "terug", "thuis")

_HYPHENATED = re.compile(r"\b([^\W\d_]{2,})-([^\W\d_]{2,})\b")

Related = Mapping[str, Mapping[str, float]]
"""For each word of a question, the words that hold it in part, and how far: above 0, below 1."""


def related_words(wanted: Sequence[str], held: Iterable[str]) -> Related:
    """Which of the stems ``held``, in Dutch texts, are compounds of a wanted one, or parts or particles of it.

    The texts are few: what begins or ends with a word is taken for a compound of it, whatever the rest is.
    """
    others = set(held)
    related = {}
    for word in wanted:
        shares = {other: COMPOUND_SHARE for other in others if has_part(other, word, DUTCH)}
        shares |= {other: COMPOUND_SHARE * len(other) / len(word) for other in others if has_part(word, other, DUTCH)}
        shares |= {other: COMPOUND_SHARE for other in PARTICLES if other in others and _is_separable(word, other)}
        if shares:
            related[word] = shares
    return related


def _is_separable(verb: str, particle: str) -> bool:
    """Whether a stem may be that of a verb with this particle; "meer" and "meester" are not."""
    return verb.startswith(particle) and len(verb) > len(particle) + 2 and verb[len(particle)] not in "rs"


WordMatches = tuple[list[float], list[float], list[float]]
"""Of each unit: the share of the question's weight that it holds, how far its heading is what is asked for, and the
share that its own text holds."""


def match_words(question: str, units: Sequence[QuotableUnit]) -> WordMatches:
    wanted = stems(_joined(question, units))
    texts = [
        (
            stem_set(unit.table_head, unit.text),
            stem_set(unit.heading),
            stem_set(unit.source.block.best.document_title, unit.source.block.best.section),
        )
        for unit in units
    ]
    weights = stem_weights(wanted, [own | heading for own, heading, _titles in texts])
    dutch = _dutch_sources(question, units)
    in_dutch = [unit.source.marker in dutch for unit in units]
    related = related_words(
        wanted,
        {stem for parts, is_dutch in zip(texts, in_dutch, strict=True) if is_dutch for part in parts for stem in part},
    )
    nothing: frozenset[str] = frozenset()
    coverages, heading_matches, own_coverages = [], [], []
    for (own, heading, titles), is_dutch in zip(texts, in_dutch, strict=True):
        compounds = related if is_dutch else {}
        coverages.append(_coverage(weights, own, heading, titles, compounds))
        heading_matches.append(_heading_match(weights, heading, compounds))
        own_coverages.append(_coverage(weights, own, nothing, nothing, compounds))
    return coverages, heading_matches, own_coverages


def _joined(question: str, units: Sequence[QuotableUnit]) -> str:
    """The question, a word with a hyphen written as one where the units write it so: auto-merge, automerge."""

    def join(match: re.Match[str]) -> str:
        word = match[1] + match[2]
        return word if any(word.casefold() in f"{unit.heading} {unit.text}".casefold() for unit in units) else match[0]

    return _HYPHENATED.sub(join, question)


def _dutch_sources(question: str, units: Sequence[QuotableUnit]) -> set[int]:
    """The markers of the sources in Dutch. What is short, or a table, is told by the question beside it."""
    contents = {unit.source.marker: unit.source.block.content for unit in units}
    return {marker for marker, content in contents.items() if detect_language(question, content) == "nl"}


def _coverage(
    weights: Mapping[str, float],
    own: AbstractSet[str],
    heading: AbstractSet[str],
    titles: AbstractSet[str],
    related: Related,
) -> float:
    total = sum(weights.values())
    if not total:
        return 0.0
    covered = 0.0
    for word, weight in weights.items():
        covered += weight * max(
            share_held(word, own, related),
            HEADING_SHARE * share_held(word, heading, related),
            TITLE_SHARE * share_held(word, titles, related),
        )
    return covered / total


def _heading_match(weights: Mapping[str, float], heading: AbstractSet[str], related: Related) -> float:
    """The share of the question's weight that a heading holds, times the share of the heading's words that hold it."""
    holding = {word for word in heading if word in weights or any(word in others for others in related.values())}
    if not holding:
        return 0.0
    share = sum(weight * share_held(word, heading, related) for word, weight in weights.items())
    return share / sum(weights.values()) * len(holding) / len(heading)


def share_held(word: str, words: AbstractSet[str], related: Related) -> float:
    """How far ``words`` hold ``word``: 1 for the word itself."""
    if word in words:
        return 1.0
    return max((share for other, share in related.get(word, {}).items() if other in words), default=0.0)
