"""How well the blocks of the context bear on a question. PURE; the embedder is handed in.

A block's score is the mean of two signals in [0, 1]: the cosine of its vector with the question's, and the share of the
question's weight in words that it holds, in its own text or in the headings above it. Vectors understand other words
for the same thing; words hold where the embedder's language ends, and for names and numbers. In Dutch a compound holds
the words it is made of in part, and they hold it. Two rules correct the mean: what is said first under the very heading
that is asked for gains, and what names another code than the question's loses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chat.grounding.blocks import QuotableBlock
from chat.grounding.words import stem_weights, stems
from retrieval.text.compounds import DUTCH, has_part
from retrieval.text.language import detect_language

if TYPE_CHECKING:
    import numpy.typing as npt

    EmbedAll = Callable[[Sequence[str]], npt.NDArray[np.float32] | None]

# Vectors are made for this many blocks at most, those that share most words with the question first.
EMBEDDED_BLOCKS = 48
# What a word of the question is worth in the heading right above a block, and in the titles further up.
HEADING_SHARE = 0.8
TITLE_SHARE = 0.5
# What a block gains that opens a section (or is a record) whose heading the question asks for.
OPENING_BONUS = 0.15
# What is left of a block's score when the question names a code (a part number, an error) that the block does not.
OTHER_CODE_SHARE = 0.5
# What a word of the question is worth in a compound of it; a part of a compound, by its share of the letters.
COMPOUND_SHARE = 0.8

_RUN = re.compile(r"[\w-]+")
_CODE = re.compile(r"(?<![^\W_])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?![^\W_])")
_LETTER = re.compile(r"[A-Za-z]")
_DIGIT = re.compile(r"\d")
_PUNCTUATION = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class ScoredBlock:
    """``score`` is the mean of ``similarity`` and ``coverage``, corrected by the rules above; all lie in [0, 1].

    ``vector`` has unit length, shape (dimension,); None for a block that was not embedded, whose similarity counts 0.
    """

    block: QuotableBlock
    score: float
    similarity: float
    coverage: float
    vector: npt.NDArray[np.float32] | None


def score_blocks(question: str, blocks: Sequence[QuotableBlock], embed: EmbedAll) -> list[ScoredBlock]:
    """The blocks, best first; ties in the order given.

    ``embed`` gives unit vectors, shape (texts, dimension), or None when it cannot: then words alone decide.
    """
    if not blocks:
        return []
    coverages, heading_matches = _match_words(question, blocks)
    asked_codes = codes(question)
    embedded = sorted(range(len(blocks)), key=lambda index: -coverages[index])[:EMBEDDED_BLOCKS]
    vectors = embed([question, *(_text_to_embed(blocks[index]) for index in embedded)])
    vector_of = {index: vectors[row] for row, index in enumerate(embedded, start=1)} if vectors is not None else {}
    scored = []
    for index, (block, coverage, heading_match) in enumerate(zip(blocks, coverages, heading_matches, strict=True)):
        vector = vector_of.get(index)
        similarity = 0.0
        if vectors is None:
            score = coverage
        else:
            similarity = max(0.0, float(vectors[0] @ vector)) if vector is not None else 0.0
            score = (similarity + coverage) / 2
        if asked_codes and not asked_codes & codes(f"{block.heading} {block.table_head} {block.text}"):
            score *= OTHER_CODE_SHARE
        if block.opens:
            # What opens a section is about its heading, even where it does not repeat it.
            score += heading_match * (OPENING_BONUS + max(0.0, 1.0 - coverage) / 2)
        scored.append(ScoredBlock(block, min(1.0, score), similarity, coverage, vector))
    return sorted(scored, key=lambda each: -each.score)


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


def _match_words(question: str, blocks: Sequence[QuotableBlock]) -> tuple[list[float], list[float]]:
    """Of each block: the share of the question's weight that it holds, and how far its heading is what is asked for."""
    wanted = stems(question)
    texts = [
        (
            set(stems(f"{block.table_head} {block.text}")),
            set(stems(block.heading)),
            set(stems(f"{block.source.block.best.document_title} {block.source.block.best.section}")),
        )
        for block in blocks
    ]
    weights = stem_weights(wanted, [own | heading for own, heading, _titles in texts])
    dutch = _dutch_sources(question, blocks)
    in_dutch = [block.source.marker in dutch for block in blocks]
    related = related_words(
        wanted,
        {stem for parts, is_dutch in zip(texts, in_dutch, strict=True) if is_dutch for part in parts for stem in part},
    )
    coverages, heading_matches = [], []
    for (own, heading, titles), is_dutch in zip(texts, in_dutch, strict=True):
        compounds = related if is_dutch else {}
        coverages.append(_coverage(weights, own, heading, titles, compounds))
        heading_matches.append(_heading_match(weights, heading, compounds))
    return coverages, heading_matches


def _dutch_sources(question: str, blocks: Sequence[QuotableBlock]) -> set[int]:
    """The markers of the sources in Dutch. What is short, or a table, is told by the question beside it."""
    contents = {block.source.marker: block.source.block.content for block in blocks}
    return {marker for marker, content in contents.items() if detect_language(f"{question}\n{content}") == "nl"}


def _coverage(
    weights: Mapping[str, float], own: set[str], heading: set[str], titles: set[str], related: Related
) -> float:
    total = sum(weights.values())
    if not total:
        return 0.0
    covered = 0.0
    for word, weight in weights.items():
        covered += weight * max(
            _share_held(word, own, related),
            HEADING_SHARE * _share_held(word, heading, related),
            TITLE_SHARE * _share_held(word, titles, related),
        )
    return covered / total


def _heading_match(weights: Mapping[str, float], heading: set[str], related: Related) -> float:
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


def _text_to_embed(block: QuotableBlock) -> str:
    """A row or an item says little without what stands above it."""
    return " ".join(filter(None, [block.heading, block.table_head.split("\n", 1)[0], block.text]))
