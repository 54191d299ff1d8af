"""How well the parts of the context bear on a question. Pure functions; the embedder is handed in.

A part's score is the mean of two signals in [0, 1]: the cosine of its vector with the question's, and the share of the
question's weight in words that it holds, in its own text or in the headings above it. Vectors understand other words
for the same thing; words hold where the embedder's language ends, and for names and numbers. In Dutch a compound holds
the words it is made of in part, and they hold it. Two rules correct the mean: what is said first under the very heading
that is asked for gains, and what names another code than the question's loses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chat.grounding.evidence.parts import Part
from retrieval.text.compounds import DUTCH, has_part
from retrieval.text.language import detect_language
from retrieval.text.terms import expand_identifiers

if TYPE_CHECKING:
    import numpy.typing as npt

    EmbedAll = Callable[[Sequence[str]], npt.NDArray[np.float32] | None]

# Vectors are made for this many parts at most, those that share most words with the question first.
EMBEDDED_PARTS = 48
# What a word of the question is worth in the heading right above a part, and in the titles further up.
HEADING_SHARE = 0.8
TITLE_SHARE = 0.5
# What a part gains that opens a section (or is a record) whose heading the question asks for.
OPENING_BONUS = 0.15
# What is left of a part's score when the question names a code (a part number, an error) that the part does not.
OTHER_CODE_SHARE = 0.5
# What a word of the question is worth in a compound of it; a part of a compound, by its share of the letters.
COMPOUND_SHARE = 0.8
SHORTEST_STEM = 4

_WORD = re.compile(r"[^\W_]+")
_RUN = re.compile(r"[\w-]+")
_CODE = re.compile(r"(?<![^\W_])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?![^\W_])")
_LETTER = re.compile(r"[A-Za-z]")
_DIGIT = re.compile(r"\d")
_PUNCTUATION = re.compile(r"[\W_]+")
_STOP_WORDS = frozenset(
    """
    a about all also am an and any are as at be been but by can could did do does for from get had has have how
    i if in into is it its me may my no not of on or our out shall should so some such than that the their them
    then there these they this those to up use used was we were what when where which who whom whose why will
    with would you your tell explain please
    aan al als bij dan dat de deze die dit door een en er ga gaan geen het hij hoe ik in is je kan kunnen komt
    maar me mij mijn moet mag na naar niet of om ook op over te tot uit van veel voor waar waarom wanneer was
    wat we welke wie wij word worden wordt zal ze zij zijn zo zou
    """.split()  # noqa: SIM905
)
_ENDINGS = ("ingen", "ments", "ment", "ing", "ies", "ied", "ed", "en", "es", "er", "s", "e", "y", "t")


@dataclass(frozen=True, slots=True)
class ScoredPart:
    """``score`` is the mean of ``similarity`` and ``coverage``, corrected by the rules above; all lie in [0, 1].

    ``vector`` has unit length, shape (dimension,); None for a part that was not embedded, whose similarity counts 0.
    """

    part: Part
    score: float
    similarity: float
    coverage: float
    vector: npt.NDArray[np.float32] | None


def score_parts(question: str, parts: Sequence[Part], embed: EmbedAll) -> list[ScoredPart]:
    """The parts, best first; ties in the order given.

    ``embed`` gives unit vectors, shape (texts, dimension), or None when it cannot: then words alone decide.
    """
    if not parts:
        return []
    coverage, asked_for = _coverages(question, parts)
    asked = codes(question)
    embedded = sorted(range(len(parts)), key=lambda index: -coverage[index])[:EMBEDDED_PARTS]
    vectors = embed([question, *(_in_context(parts[index]) for index in embedded)])
    vector_of = {index: vectors[place] for place, index in enumerate(embedded, start=1)} if vectors is not None else {}
    scored = []
    for index, part in enumerate(parts):
        vector = vector_of.get(index)
        similarity = 0.0
        if vectors is None:
            score = coverage[index]
        else:
            similarity = max(0.0, float(vectors[0] @ vector)) if vector is not None else 0.0
            score = (similarity + coverage[index]) / 2
        if asked and not asked & codes(f"{part.heading} {part.lead} {part.text}"):
            score *= OTHER_CODE_SHARE
        if part.opens:
            # What opens a section is about its heading, even where it does not repeat it.
            score += asked_for[index] * (OPENING_BONUS + max(0.0, 1.0 - coverage[index]) / 2)
        score = min(1.0, score)
        scored.append(ScoredPart(part, score, similarity, coverage[index], vector))
    return sorted(scored, key=lambda part: -part.score)


def codes(text: str) -> set[str]:
    """Identifiers of letters and at least three digits, such as part numbers and error codes, without their
    punctuation, lower-cased.

    A text about E-201 does not answer a question about E-512, however alike the two look to an embedder.
    """
    return {_PUNCTUATION.sub("", code).lower() for run in _RUN.finditer(text) for code in _codes_in(run.group())}


def _codes_in(run: str) -> Iterator[str]:
    """The codes of a text without blanks: what begins before its last letter and its last three digits."""
    letters = [letter.start() for letter in _LETTER.finditer(run)]
    digits = [digit.start() for digit in _DIGIT.finditer(run)]
    if letters and len(digits) >= 3:
        last = min(letters[-1], digits[-3])
        yield from (code.group() for code in _CODE.finditer(run) if code.start() <= last)


def stems(text: str) -> list[str]:
    """The words of ``text`` that carry meaning, reduced to their likely stems, in order, without repeats."""
    words = _WORD.findall(expand_identifiers(text).lower())
    return list(dict.fromkeys(_stem(word) for word in words if word not in _STOP_WORDS))


def _stem(word: str) -> str:
    """A rough common beginning of a word's forms, in English and Dutch; identifiers and numbers stay whole."""
    if word.isalpha() and len(word) > SHORTEST_STEM:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
                return word[: -len(ending)]
    return word


def word_weights(wanted: Sequence[str], held: Sequence[Collection[str]]) -> dict[str, float]:
    """What each wanted stem is worth among texts that hold the stems ``held``; positive.

    A rare word tells more than a common one, and a word that no text holds tells most: it is what is missing.
    """
    return {word: math.log1p((len(held) + 1) / (0.5 + sum(word in words for words in held))) for word in wanted}


Related = Mapping[str, Mapping[str, float]]
"""For each word of a question, the words that hold it in part, and how far: above 0, below 1."""


def related_words(wanted: Sequence[str], held: Iterable[str]) -> Related:
    """Which of the stems ``held``, in Dutch texts, are compounds of a wanted one, or parts of it.

    The texts are few: what begins or ends with a word is taken for a compound of it, whatever the rest is.
    """
    others = set(held)
    related = {}
    for word in wanted:
        shares = {other: COMPOUND_SHARE for other in others if has_part(other, word, DUTCH)}
        shares |= {other: COMPOUND_SHARE * len(other) / len(word) for other in others if has_part(word, other, DUTCH)}
        if shares:
            related[word] = shares
    return related


def _coverages(question: str, parts: Sequence[Part]) -> tuple[list[float], list[float]]:
    """Of each part: the share of the question's weight that it holds, and how far its heading is what was asked for."""
    wanted = stems(question)
    own = [set(stems(f"{part.lead} {part.text}")) for part in parts]
    above = [set(stems(part.heading)) for part in parts]
    titles = [set(stems(_titles(part))) for part in parts]
    weights = word_weights(wanted, [one | other for one, other in zip(own, above, strict=True)])
    dutch = _dutch_sources(question, parts)
    in_dutch = [place for place, part in enumerate(parts) if part.source.marker in dutch]
    related = related_words(
        wanted, {word for i in in_dutch for words in (own[i], above[i], titles[i]) for word in words}
    )
    related_to = [related if part.source.marker in dutch else {} for part in parts]
    held = [_coverage(weights, own[i], above[i], titles[i], related_to[i]) for i in range(len(parts))]
    asked_for = [_asked_for(weights, above[i], related_to[i]) for i in range(len(parts))]
    return held, asked_for


def _dutch_sources(question: str, parts: Sequence[Part]) -> set[int]:
    """The markers of the sources in Dutch. What is short, or a table, is told by the question beside it."""
    contents = {part.source.marker: part.source.block.content for part in parts}
    return {marker for marker, content in contents.items() if detect_language(f"{question}\n{content}") == "nl"}


def _coverage(
    weights: Mapping[str, float], own: set[str], above: set[str], titles: set[str], related: Related
) -> float:
    total = sum(weights.values())
    if not total:
        return 0.0
    found = 0.0
    for word, weight in weights.items():
        found += weight * max(
            _share_held(word, own, related),
            HEADING_SHARE * _share_held(word, above, related),
            TITLE_SHARE * _share_held(word, titles, related),
        )
    return found / total


def _asked_for(weights: Mapping[str, float], heading: set[str], related: Related) -> float:
    """The share of the question's weight that a heading holds, times the share of the heading's words that hold it."""
    holding = {word for word in heading if word in weights or any(word in others for others in related.values())}
    if not holding:
        return 0.0
    share = sum(weight * _share_held(word, heading, related) for word, weight in weights.items())
    return share / sum(weights.values()) * len(holding) / len(heading)


def _share_held(word: str, words: set[str], related: Related) -> float:
    """How far ``words`` hold ``word``: 1 for the word itself."""
    if word in words:
        return 1.0
    return max((share for other, share in related.get(word, {}).items() if other in words), default=0.0)


def _titles(part: Part) -> str:
    best = part.source.block.best
    return f"{best.document_title} {best.section}"


def _in_context(part: Part) -> str:
    """A part as the embedder reads it: a row or an item says little without what stands above it."""
    return " ".join(filter(None, [part.heading, part.lead.split("\n", 1)[0], part.text]))
