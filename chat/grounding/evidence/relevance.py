"""How well the units of the context bear on a question. PURE; what vectors tell is handed in.

A unit's score is the mean of two signals in [0, 1]: the cosine of its vector with the question's, and the share of the
question's weight in words that the unit holds, in its own text or in the headings above it. Vectors understand other
words for the same thing; words hold where the embedder's language ends, and for names and numbers. Two rules correct
the mean: what is said first under the very heading that is asked for gains, and what names another code than the
question's loses.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chat.grounding.evidence.coverage import WordMatches, match_words
from chat.grounding.evidence.units import QuotableUnit, UnitKind
from chat.grounding.words import stems
from retrieval.text.blocks import BlockKind

if TYPE_CHECKING:
    from chat.grounding.evidence.closeness import Closeness, Compare
    from retrieval.types import Vectors

# Vectors are compared for this many units at most, those that share most words with the question first.
COMPARED_UNITS = 48
# What a unit loses for each point of score that its passage is behind the best one, up to LARGEST_GAP points.
RANK_WEIGHT = 0.12
LARGEST_GAP = 3.0
# What a unit gains that begins with the code that is asked for, as the entry of a list of codes does.
ENTRY_BONUS = 0.2
LONGEST_CODE = 24
# What is left of the score of an FAQ's answer whose question asks with none of the words of this one, where it holds
# none of them itself.
OTHER_QUESTION_SHARE = 0.3
# What a block gains that opens a section (or is a record) whose heading the question asks for.
OPENING_BONUS = 0.15
# What is left of a block's score when the question names a code (a part number, an error) that the block does not.
OTHER_CODE_SHARE = 0.5
# The same for names in code (UserRateThrottle, read_only): the section of one often goes on without repeating it.
OTHER_NAME_SHARE = 0.8
_RUN = re.compile(r"[\w-]+")
_CODE = re.compile(r"(?<![^\W_])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?![^\W_])")
_IDENTIFIER = re.compile(r"\b[^\W_]*[a-z][A-Z]\w*|\b[^\W_]+_\w+")
_LETTER = re.compile(r"[A-Za-z]")
_DIGIT = re.compile(r"\d")
_PUNCTUATION = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class ScoredUnit:
    """``score`` is made of ``coverage`` and ``similarity``, corrected by the rules above; all lie in [0, 1].

    ``vector`` has unit length, shape (dimension,); None for a unit that was not compared, whose similarity counts 0.
    """

    unit: QuotableUnit
    score: float
    similarity: float
    coverage: float
    vector: Vectors | None


class UnitScoring:
    """The units of the context, scored for a question; ``compare`` tells how near they come in meaning. When it cannot,
    words alone decide."""

    def __init__(self, question: str, units: Sequence[QuotableUnit], compare: Compare) -> None:
        self._question, self._units = question, units
        self._matches = match_words(question, units) if units else ([], [], [])
        order = sorted(
            range(len(units)), key=lambda index: (units[index].kind is not UnitKind.WHOLE, -self._matches[0][index])
        )[:COMPARED_UNITS]
        self._closeness = compare(question, [units[index] for index in order]) if units else None
        self._columns = {index: column for column, index in enumerate(order)} if self._closeness is not None else {}
        self._scored = _score(question, units, self._matches, self._closeness, self._columns) if units else []

    def scored(self) -> list[ScoredUnit]:
        """Best first; ties in the order given."""
        return sorted(self._scored, key=lambda each: -each.score)


def _score(
    question: str,
    units: Sequence[QuotableUnit],
    matches: WordMatches,
    closeness: Closeness | None,
    column_of: Mapping[int, int],
) -> list[ScoredUnit]:
    """The units' scores, in the order given."""
    coverages, heading_matches, own_coverages = matches
    asked_codes = codes(question)
    asked_names = identifiers(question)
    best_source = max(unit.source.block.score for unit in units)
    scored = []
    for index, (unit, coverage, heading_match) in enumerate(zip(units, coverages, heading_matches, strict=True)):
        similarity = 0.0
        vector = None
        column = column_of.get(index)
        if closeness is None:
            score = coverage
        else:
            if column is not None:
                similarity, vector = max(0.0, float(closeness.similarities[column])), closeness.vectors[column]
            score = (similarity + coverage) / 2
        if asked_codes:
            if not asked_codes & codes(f"{unit.heading} {unit.table_head} {unit.text}"):
                score *= OTHER_CODE_SHARE
            elif asked_codes & codes(f"{unit.heading} {unit.text[:LONGEST_CODE]}"):
                score += ENTRY_BONUS
        if asked_names and not asked_names & identifiers(f"{unit.heading} {unit.table_head} {unit.text}"):
            score *= OTHER_NAME_SHARE
        if unit.block.kind is BlockKind.QUESTION and unit.block.lead_in is not None:
            asked_there = max(_share_asked(question, unit) ** 2, own_coverages[index])
            score *= OTHER_QUESTION_SHARE + (1 - OTHER_QUESTION_SHARE) * asked_there
        score -= RANK_WEIGHT * min(LARGEST_GAP, best_source - unit.source.block.score)
        if unit.opens:
            # What opens a section is about its heading, even where it does not repeat it.
            score += heading_match * (OPENING_BONUS + max(0.0, 1.0 - coverage) / 2)
        scored.append(ScoredUnit(unit, min(1.0, max(0.0, score)), similarity, coverage, vector))
    return scored


def _share_asked(question: str, unit: QuotableUnit) -> float:
    """The share of the words of an FAQ's question that the question has too."""
    start, end = unit.block.lead_in or (unit.start, unit.start)
    offset = unit.source.block.start
    words = stems(unit.source.block.content[max(0, start - offset) : max(0, end - offset)] or unit.heading)
    asked = stems(question)
    return sum(word in asked for word in words) / len(words) if words else 1.0


@functools.lru_cache(maxsize=4096)
def codes(text: str) -> frozenset[str]:
    """Identifiers of letters and at least three digits, such as part numbers and error codes, without their
    punctuation, lower-cased.

    A text about E-201 does not answer a question about E-512, however alike the two look to an embedder.
    """
    # A code has digits: most runs of letters need not be looked at.
    runs = (run for run in _RUN.findall(text) if not run.isalpha())
    return frozenset(_PUNCTUATION.sub("", code).lower() for run in runs for code in _codes_in(run))


def identifiers(text: str) -> set[str]:
    """Names in code, told by a capital letter inside or an underscore, lower-cased."""
    return {match.group().lower() for match in _IDENTIFIER.finditer(text)}


def _codes_in(run: str) -> Iterator[str]:
    """The codes of a text without blanks: what begins before its last letter and its last three digits."""
    letters = [letter.start() for letter in _LETTER.finditer(run)]
    digits = [digit.start() for digit in _DIGIT.finditer(run)]
    if letters and len(digits) >= 3:
        last = min(letters[-1], digits[-3])
        yield from (code.group() for code in _CODE.finditer(run) if code.start() <= last)
