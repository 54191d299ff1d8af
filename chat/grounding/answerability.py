"""How likely it is that the documents answer a question, by what was found on it. PURE; the embedder is handed in.

Three signals in [0, 1] are weighed, each plain to read: how close the closest block comes in meaning (``similarity``),
how much of the question's weight in words the best single source holds (``coverage``), and how much all sources hold
together (``reach``). A logistic regression turns them into a probability. They separate a question that the documents
answer from one about something else. They recognise much less well that a passage on the right subject lacks the fact
asked for. docs/quality.md has the figures.

Source: Cox, "The Regression Analysis of Binary Sequences", Journal of the Royal Statistical Society, 1958.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chat.grounding.blocks import QuotableBlock, quotable_blocks
from chat.grounding.relevance import ScoredBlock, codes, score_blocks
from chat.grounding.words import stem_weights, stems
from retrieval.text.language import detect_language

if TYPE_CHECKING:
    from chat.grounding.relevance import EmbedAll
    from chat.types import Source

# Fitted on 1,131 answerable and 1,320 off-topic questions of six sets, English and Dutch, each set and each kind
# counting the same, with vectors of CALIBRATED_FOR. Chosen where a model fitted on five sets judges the sixth.
INTERCEPT = -14.15
WEIGHTS: Mapping[str, float] = {"similarity": 20.2, "coverage": 7.05, "reach": 4.06}
# The same from words alone: without an embedder, or with one whose cosines lie on another scale.
INTERCEPT_OF_WORDS = -5.98
WEIGHTS_OF_WORDS: Mapping[str, float] = {"coverage": 14.6, "reach": 3.19}
CALIBRATED_FOR = "all-MiniLM-L6-v2"
# The weight of what a question means beyond its words: that all of a single word is held says little.
UNSPOKEN = 2.0

# From here on the extractive answerer answers. It cannot read, and would quote what only looks like an answer: of
# off-topic questions 97 % stay below, of answerable ones 2.2 %. Words alone tell less: 82 % and 2.5 %.
ANSWERABLE = 0.4
# The embedder learnt from English: in another language whatever is asked is close to whatever is said. At 0.4 10 % of
# Dutch off-topic questions pass, at 0.7 6 %; of answerable ones 4.2 % are refused in place of 3.0 %.
ANSWERABLE_NOT_IN_ENGLISH = 0.7
ANSWERABLE_BY_WORDS = 0.2
# What the best single block must reach beside that: of a context that is close only as a whole nothing can be quoted.
WEAKEST_BLOCK = 0.35
# Below it not even a language model need be asked: 89 % of off-topic questions are, and 2 of the 1,131 answerable ones.
HOPELESS = 0.05
# The most that is left to a question that names codes (part numbers, errors) of which no source names one.
UNKNOWN_CODE = 0.05


@dataclass(frozen=True, slots=True)
class Answerability:
    """``probability`` that the documents answer the question, in [0, 1], and the features it was estimated from.

    It takes for granted that a question has an answer or is about something else: one that asks for a missing fact
    about a subject that is described looks almost like an answerable one. ``by_words`` says that vectors took no part,
    ``in_english`` that the question is in the language that the embedder learnt from, as far as that can be told.
    """

    probability: float
    features: Mapping[str, float]
    by_words: bool = False
    in_english: bool = True

    @property
    def is_answerable(self) -> bool:
        """Whether quoting the documents is likelier to answer the question than to miss it."""
        if self.by_words:
            return self.probability >= ANSWERABLE_BY_WORDS
        threshold = ANSWERABLE if self.in_english else ANSWERABLE_NOT_IN_ENGLISH
        return self.probability >= threshold and self.features["best_block"] >= WEAKEST_BLOCK

    @property
    def is_hopeless(self) -> bool:
        """Whether there is nothing to answer from, not even for a language model. Words alone never say so: the
        documents may use others, or another language."""
        return not self.by_words and self.probability < HOPELESS


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the sources hold on a question: their ``blocks`` in order, and the same ``scored``, best first."""

    blocks: tuple[QuotableBlock, ...]
    scored: tuple[ScoredBlock, ...]
    answerability: Answerability

    @property
    def has_vectors(self) -> bool:
        return any(each.vector is not None for each in self.scored)


def weigh(question: str, sources: Sequence[Source], embed: EmbedAll, *, calibrated: bool = True) -> Evidence:
    """The evidence of ``sources`` on ``question``; ``embed`` as in :func:`chat.grounding.relevance.score_blocks`.

    ``calibrated`` says that its cosines lie on the scale that the weights were fitted on.
    """
    blocks = quotable_blocks(sources)
    scored = score_blocks(question, blocks, embed)
    return Evidence(tuple(blocks), tuple(scored), assess(question, scored, sources, calibrated=calibrated))


def assess(
    question: str, scored: Sequence[ScoredBlock], sources: Sequence[Source], *, calibrated: bool = True
) -> Answerability:
    """The answerability of ``question`` by ``sources``, whose blocks are ``scored``; 0 when there are none.

    A question without a word that carries meaning ("What is it?") has nothing to be covered: similarity decides.
    """
    if not scored:
        return Answerability(0.0, {"best_block": 0.0})
    by_words = not calibrated or all(each.vector is None for each in scored)
    blocks = [each.block for each in scored]
    weights = stem_weights(
        stems(question), [set(stems(f"{block.heading} {block.table_head} {block.text}")) for block in blocks]
    )
    source_stems = [set(stems(_text(source))) for source in sources]
    features = {
        "coverage": max(_share(weights, words) for words in source_stems),
        "reach": _share(weights, set().union(*source_stems)),
    }
    if not by_words:
        features["similarity"] = max(each.similarity for each in scored)
    intercept, slopes = (INTERCEPT_OF_WORDS, WEIGHTS_OF_WORDS) if by_words else (INTERCEPT, WEIGHTS)
    logit = intercept + sum(slopes[name] * value for name, value in features.items())
    probability = 1.0 / (1.0 + math.exp(-logit))
    features["best_block"] = scored[0].score
    features["unknown_code"] = float(_names_unknown_codes(question, sources))
    if features["unknown_code"]:
        probability = min(probability, UNKNOWN_CODE)
    return Answerability(probability, features, by_words, _is_english(question, sources))


def _is_english(question: str, sources: Sequence[Source]) -> bool:
    """Whether the question is in English, or in no language that is known; one that is too short is in the sources'."""
    return (detect_language(question) or detect_language(sources[0].block.content if sources else "")) in ("", "en")


def _names_unknown_codes(question: str, sources: Sequence[Source]) -> bool:
    """Whether the question names codes and the sources none of them. What begins one names it: MX-9920, MX-9920-W."""
    # 1990s, 500mb and mid-1990s are written in other ways too: a code begins with a letter and has a capital one.
    words = " ".join(word for word in question.split() if word != word.lower())
    asked = tuple(code for code in codes(words) if code[0].isalpha())
    return bool(asked) and not any(code.startswith(asked) for source in sources for code in codes(_text(source)))


def _text(source: Source) -> str:
    best = source.block.best
    return f"{best.document_title} {best.section} {source.block.content}"


def _share(weights: Mapping[str, float], held: set[str]) -> float:
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in held) / (total + UNSPOKEN)
