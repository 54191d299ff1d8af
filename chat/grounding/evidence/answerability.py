"""How likely it is that the documents answer a question, by what was found on it. PURE; what vectors tell is handed in.

Three signals in [0, 1] are weighed, each plain to read: how close the closest block comes in meaning (``similarity``),
how much of the question's weight in words the best single source holds (``coverage``), and how much all sources hold
together (``reach``). A logistic regression turns them into a probability. Of a question that asks for an amount, a date
or another value, only the blocks that hold one, or stand beside it, count as close (chat.questions.presence). This
separates a question that the documents answer from one about something else. That a passage on the right subject lacks
the fact asked for is recognised less well. docs/quality.md has the figures.

Source: Cox, "The Regression Analysis of Binary Sequences", Journal of the Royal Statistical Society, 1958.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chat.grounding.evidence.relevance import ScoredUnit, UnitScoring, codes
from chat.grounding.evidence.units import QuotableUnit, UnitKind, quotable_units, whole_units
from chat.grounding.words import stem_set, stem_weights, stems
from chat.questions.analysis import Question, analyse, is_same_question
from chat.questions.presence import PresencePassage, assess_presence, without_replacements
from chat.types import AnswerForm
from retrieval.dense.calibration.scales import BUILT_IN, Compared
from retrieval.text.language import detect_language

if TYPE_CHECKING:
    from chat.grounding.evidence.closeness import Compare
    from chat.types import ContextSource
    from retrieval.dense.calibration.scales import Calibration

# Fitted on 1,131 answerable and 1,320 off-topic questions of six sets, English and Dutch, each set and each kind
# counting the same, with vectors of all-MiniLM-L6-v2. Chosen where a model fitted on five sets judges the sixth.
INTERCEPT = -14.15
WEIGHTS: Mapping[str, float] = {"similarity": 20.2, "coverage": 7.05, "reach": 4.06}
# The same from words alone: without an embedder, or with one whose cosines lie on another scale.
INTERCEPT_OF_WORDS = -5.98
WEIGHTS_OF_WORDS: Mapping[str, float] = {"coverage": 14.6, "reach": 3.19}
# The weight of what a question means beyond its words: that all of a single word is held says little.
UNSPOKEN = 2.0

# From here on the extractive answerer answers. It cannot read, and would quote what only looks like an answer: of
# off-topic questions 97 % stay below, of answerable ones 2.2 %. Words alone tell less: 82 % and 2.5 %.
ANSWERABLE = 0.4
# The embedder learnt from English: in another language whatever is asked is close to whatever is said, so more is asked
# of the best block too, unless it reaches NEAR_BLOCK. Of 150 Dutch questions about other things 2 % are answered so
# (9 % are without the condition); of 100 answerable ones 6 % are refused (4 %).
ANSWERABLE_NOT_IN_ENGLISH = 0.7
WEAKEST_BLOCK_NOT_IN_ENGLISH = 0.37
ANSWERABLE_BY_WORDS = 0.2
# From here on the blocks that come near are shown as what the documents say about it. In English it saves a third of
# the answerable questions that would be refused, and lets one off-topic question in a hundred through; in Dutch eight.
SHOWABLE = 0.3
# A block as near as this is shown from SHOWABLE_BY_BLOCK on, and answers in another language as it would in English: of
# 300 off-topic questions in English 2 have such a block and that probability, of 150 in Dutch none.
NEAR_BLOCK = 0.5
SHOWABLE_BY_BLOCK = 0.1
# What the best single block must reach beside that: of a context that is close only as a whole nothing can be quoted.
WEAKEST_BLOCK = 0.25
CLOSE_TO_WEAKEST = 0.08
# Unless it is as probable as this: on no set that was tried is an off-topic question.
CERTAIN = 0.9
# Below it not even a language model need be asked: 89 % of off-topic questions are, and 2 of the 1,131 answerable ones.
HOPELESS = 0.05
# The most that is left to a question that names codes (part numbers, errors) of which no source names one, or is a sum.
UNKNOWN_CODE = 0.05

_CALCULATION = re.compile(
    r"[\d.,()]++\s?(?:[-+*/x×÷^]|plus|minus|times|divided by|min|maal|keer|gedeeld door)\s?[\d.,()]++", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Answerability:
    """``probability`` that the documents answer the question, in [0, 1], and the features it was estimated from.

    ``by_words`` says that vectors took no part, ``in_english`` that the question is in the language that the embedder
    learnt from, as far as that can be told. ``missing`` is the kind of value that is asked for and does not stand
    beside what is asked about, one of :class:`chat.questions.types.ValueKind`; empty when none is known to be missing.
    """

    probability: float
    features: Mapping[str, float]
    by_words: bool = False
    in_english: bool = True
    missing: str = ""

    @property
    def form(self) -> AnswerForm:
        """What a reader should get who cannot be given more than quotations."""
        if self.is_answerable:
            return AnswerForm.ANSWER
        is_telling = not self.by_words and not self._has_no_block and not self.missing
        showable = SHOWABLE_BY_BLOCK if self._is_near else SHOWABLE
        if is_telling and self.in_english and self.probability >= showable:
            return AnswerForm.EXCERPTS
        return AnswerForm.REFUSAL

    @property
    def is_answerable(self) -> bool:
        """Whether quoting the documents is likelier to answer the question than to miss it."""
        if self.by_words:
            return self.probability >= ANSWERABLE_BY_WORDS
        threshold = ANSWERABLE if self.in_english or self._is_near else ANSWERABLE_NOT_IN_ENGLISH
        return self.probability >= threshold and not self._has_no_block

    @property
    def _is_near(self) -> bool:
        return self.features["best_block"] >= NEAR_BLOCK

    @property
    def _has_no_block(self) -> bool:
        if not self.in_english:
            return self.features["best_block"] < WEAKEST_BLOCK_NOT_IN_ENGLISH
        return self.features["best_block"] < WEAKEST_BLOCK and self.probability < CERTAIN

    @property
    def is_decided(self) -> bool:
        """Whether it is so far from every threshold that reading a few units more closely cannot matter."""
        is_far = self.probability < HOPELESS or self.probability > CERTAIN
        return is_far and abs(self.features["best_block"] - WEAKEST_BLOCK) >= CLOSE_TO_WEAKEST

    @property
    def is_hopeless(self) -> bool:
        """Whether there is nothing to answer from, not even for a language model. Words alone never say so: the
        documents may use others, or another language."""
        return not self.by_words and self.features.get("on_subject", self.probability) < HOPELESS


# A unit as near as this to one that is shown says the same again.
REPEATS_FROM = 0.93


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the sources hold on a question: their ``units`` in order, and the same ``scored``, best first; ``wholes``
    are their lists and tables as a whole, best first. Two units whose vectors have a greater cosine than
    ``repeats_from`` say the same; None where no cosine tells."""

    units: tuple[QuotableUnit, ...]
    scored: tuple[ScoredUnit, ...]
    answerability: Answerability
    wholes: tuple[ScoredUnit, ...] = ()
    repeats_from: float | None = REPEATS_FROM

    @property
    def has_vectors(self) -> bool:
        return any(each.vector is not None for each in self.scored)


def weigh(
    question: str, sources: Sequence[ContextSource], compare: Compare, calibration: Calibration | None = BUILT_IN
) -> Evidence:
    """The evidence of ``sources`` on ``question``.

    ``compare`` tells how near the units come in meaning; when it cannot, words alone decide.

    Without the ``calibration`` that brought its similarities to the scale of the weights, words alone judge.
    """
    units = quotable_units(sources)
    scoring = UnitScoring(question, [*units, *whole_units(sources)], compare)
    words = _WordsFound(question, analyse(question), units, sources)

    scored = [each for each in scoring.scored() if each.unit.kind is not UnitKind.WHOLE]
    answerability = _judge(words, scored, calibrated=calibration is not None)
    wholes = [each for each in scoring.scored() if each.unit.kind is UnitKind.WHOLE]
    repeats_from = calibration.scale(Compared.TEXTS).cosine_of(REPEATS_FROM) if calibration is not None else None
    return Evidence(tuple(units), tuple(scored), answerability, tuple(wholes), repeats_from)


class _WordsFound:
    """What the words of the sources tell of a question, however near its units come to it in meaning."""

    def __init__(
        self, question: str, asked: Question, units: Sequence[QuotableUnit], sources: Sequence[ContextSource]
    ) -> None:
        self.asked = asked
        headings = {unit.section.heading for unit in units}
        self.is_asked_there = any(is_same_question(asked, heading) for heading in headings)
        weights = stem_weights(stems(question), [stem_set(unit.heading, unit.table_head, unit.text) for unit in units])
        source_stems = [stem_set(_text(source)) for source in sources]
        self.coverage = max((_share(weights, words) for words in source_stems), default=0.0)
        self.reach = _share(weights, set().union(*source_stems))
        self.is_foreign = _names_unknown_codes(question, sources) or bool(_CALCULATION.fullmatch(asked.topic))
        self.in_english = _is_english(question, sources)


def _judge(words: _WordsFound, scored: Sequence[ScoredUnit], *, calibrated: bool) -> Answerability:
    """The answerability of a question by sources, whose units are ``scored``; 0 when there are none.

    A question that a heading asks too is answered below it, whether or not a value is recognised there. A question
    without a word that carries meaning ("What is it?") has nothing to be covered: similarity decides.
    """
    if not scored:
        return Answerability(0.0, {"best_block": 0.0})
    by_words = not calibrated or all(each.vector is None for each in scored)
    features = {"coverage": words.coverage, "reach": words.reach}
    missing = ""
    if not by_words:
        presence = assess_presence(words.asked, _passages(scored))
        features["similarity"] = presence.similarity if words.is_asked_there else presence.value_similarity
        features["closest"] = presence.similarity
        missing = "" if words.is_asked_there else presence.missing or ""
    intercept, slopes = (INTERCEPT_OF_WORDS, WEIGHTS_OF_WORDS) if by_words else (INTERCEPT, WEIGHTS)
    probability = _probability(intercept, slopes, features)
    # A value that is not recognised is no reason not to ask a language model.
    features["on_subject"] = _probability(intercept, slopes, {**features, "similarity": features.get("closest", 0.0)})
    features["best_block"] = scored[0].score
    features["unknown_code"] = float(words.is_foreign)
    if words.is_foreign:
        probability = min(probability, UNKNOWN_CODE)
        features["on_subject"] = min(features["on_subject"], UNKNOWN_CODE)
    return Answerability(probability, features, by_words, words.in_english, missing)


def _probability(intercept: float, slopes: Mapping[str, float], features: Mapping[str, float]) -> float:
    return 1.0 / (1.0 + math.exp(-intercept - sum(slope * features[name] for name, slope in slopes.items())))


def _passages(scored: Sequence[ScoredUnit]) -> list[PresencePassage]:
    """The units in the order of the sources and of their texts."""
    ordered = sorted(scored, key=lambda each: (each.unit.source.marker, each.unit.start))
    return [
        PresencePassage(
            each.unit.source.marker, each.unit.text, f"{each.unit.heading} {each.unit.table_head}", each.similarity
        )
        for each in ordered
    ]


def _is_english(question: str, sources: Sequence[ContextSource]) -> bool:
    """Whether the question is in English, or in no language that is known; one that is too short is in the sources'."""
    return (detect_language(question) or detect_language(sources[0].block.content if sources else "")) in ("", "en")


def _names_unknown_codes(question: str, sources: Sequence[ContextSource]) -> bool:
    """Whether the question names codes and the sources none of them, but as what replaces another one.

    What begins a code names it: MX-9920, MX-9920-W.
    """
    # 1990s, 500mb and mid-1990s are written in other ways too: a code begins with a letter and has a capital one.
    words = " ".join(word for word in question.split() if word != word.lower())
    asked = tuple(code for code in codes(words) if code[0].isalpha())
    told = (code for source in sources for code in codes(without_replacements(_text(source))))
    return bool(asked) and not any(code.startswith(asked) for code in told)


def _text(source: ContextSource) -> str:
    best = source.block.best
    return f"{best.document_title} {best.section} {source.block.content}"


def _share(weights: Mapping[str, float], held: AbstractSet[str]) -> float:
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in held) / (total + UNSPOKEN)
