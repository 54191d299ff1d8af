"""How far the units of the context hold the words of a question, in their own text or in what stands above it. PURE.

The question's weight is that of its words, the rarer the heavier.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from chat.grounding.evidence.units import QuotableUnit
from chat.grounding.words import stem_set, stem_weights, stems

# What a word of the question is worth in the heading right above a block, and in the titles further up.
HEADING_SHARE = 0.8
TITLE_SHARE = 0.5
_HYPHENATED = re.compile(r"\b([^\W\d_]{2,})-([^\W\d_]{2,})\b")

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
    nothing: frozenset[str] = frozenset()
    coverages, heading_matches, own_coverages = [], [], []
    for own, heading, titles in texts:
        coverages.append(_coverage(weights, own, heading, titles))
        heading_matches.append(_heading_match(weights, heading))
        own_coverages.append(_coverage(weights, own, nothing, nothing))
    return coverages, heading_matches, own_coverages


def _joined(question: str, units: Sequence[QuotableUnit]) -> str:
    """The question, a word with a hyphen written as one where the units write it so: auto-merge, automerge."""

    def join(match: re.Match[str]) -> str:
        word = match[1] + match[2]
        return word if any(word.casefold() in f"{unit.heading} {unit.text}".casefold() for unit in units) else match[0]

    return _HYPHENATED.sub(join, question)


def _coverage(
    weights: Mapping[str, float],
    own: AbstractSet[str],
    heading: AbstractSet[str],
    titles: AbstractSet[str],
) -> float:
    total = sum(weights.values())
    if not total:
        return 0.0
    covered = 0.0
    for word, weight in weights.items():
        covered += weight * max(
            (word in own),
            HEADING_SHARE * (word in heading),
            TITLE_SHARE * (word in titles),
        )
    return covered / total


def _heading_match(weights: Mapping[str, float], heading: AbstractSet[str]) -> float:
    """The share of the question's weight that a heading holds, times the share of the heading's words that hold it."""
    holding = heading & weights.keys()
    if not holding:
        return 0.0
    share = sum(weight * (word in heading) for word, weight in weights.items())
    return share / sum(weights.values()) * len(holding) / len(heading)
