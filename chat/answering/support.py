"""How likely the passages that a sentence rests on bear it out: its support. PURE.

Words decide, not vectors: on labelled answers, late interaction of token vectors raised the area under the ROC curve by
.001 (docs/quality.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from chat.answering.assertions import extract_assertion
from chat.answering.supporting_passages import AssertionCheck, EvidencePassage, SentenceMatch
from chat.answering.words import contradicts, pairs, stem_weight


class SupportReason(StrEnum):
    """What speaks against a sentence. ``ELSEWHERE``: another source than the cited one bears it out."""

    NUMBER = "number"
    NAME = "name"
    NEGATION = "negation"
    WORDS = "words"
    UNCITED = "uncited"
    ELSEWHERE = "elsewhere"


THRESHOLD = 0.7
"""A sentence with less support is marked: on the sentences that the weights were fitted on 46 % of the bad ones (42 %
when the weights are fitted on others) and 7 % of the good. A number, a name or a `not` that the sources do not support
is always below."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer, and the markers of the passages it rests on; none: on any of them."""

    text: str
    markers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """How far a statement is supported, from 0 to 1, what speaks against it, and the sentence that comes closest.

    ``features`` is None for a statement that stands in a passage word for word. ``match`` is None when no passage holds
    any of its words.
    """

    support: float
    reasons: tuple[SupportReason, ...]
    match: SentenceMatch | None
    features: Features | None = None

    @property
    def supported(self) -> bool:
        return self.support >= THRESHOLD


class SupportScorer:
    """Checks statements against the passages of one answer."""

    def __init__(self, passages: Sequence[EvidencePassage]) -> None:
        self._passages = tuple(passages)
        self._sentence_count = sum(len(passage.sentences) for passage in passages)
        self._holders = Counter(stem for passage in passages for each in passage.sentences for stem in each.stems)

    def score(self, statements: Sequence[Statement]) -> list[SentenceSupport | None]:
        """The support of each statement, in order; None for one that asserts nothing (:func:`extract_assertion`).

        A statement is checked against the passages it cites. When these do not bear it out and all together do, it
        stays unsupported, for the reason `elsewhere`, and its match is there. One that cites no passage that is given
        is checked against all of them, and has the reason `uncited`.
        """
        scopes = [self._cited(statement.markers) for statement in statements]
        supports = self._measure([(each.text, scope) for each, scope in zip(statements, scopes, strict=True)])
        doubtful = [
            number
            for number, support in enumerate(supports)
            if support is not None and not support.supported and 0 < len(scopes[number]) < len(self._passages)
        ]
        anywhere = self._measure([(statements[number].text, self._passages) for number in doubtful])
        for number, other in zip(doubtful, anywhere, strict=True):
            own = supports[number]
            if own is not None and other is not None and other.supported:
                supports[number] = replace(own, reasons=(*own.reasons, SupportReason.ELSEWHERE), match=other.match)
        return [
            replace(support, reasons=(*support.reasons, SupportReason.UNCITED))
            if support is not None and not scope
            else support
            for support, scope in zip(supports, scopes, strict=True)
        ]

    def score_each(self, cited: Sequence[tuple[str, int]]) -> list[SentenceSupport | None]:
        """The support of each text by the one passage with that marker, as :meth:`score`."""
        return self._measure([(text, self._cited((marker,))) for text, marker in cited])

    def _cited(self, markers: Sequence[int]) -> tuple[EvidencePassage, ...]:
        return tuple(passage for passage in self._passages if passage.marker in markers)

    def _measure(self, texts: Sequence[tuple[str, Sequence[EvidencePassage]]]) -> list[SentenceSupport | None]:
        """The support of each text by its passages, or by all where it has none."""
        checks = [
            AssertionCheck(assertion, passages or self._passages, self._weigh) if assertion is not None else None
            for assertion, passages in ((extract_assertion(text), passages) for text, passages in texts)
        ]
        return [self._support_of(check) if check is not None else None for check in checks]

    def _weigh(self, stem: str) -> float:
        return stem_weight(self._holders[stem], self._sentence_count)

    def _support_of(self, check: AssertionCheck) -> SentenceSupport:
        if check.verbatim_match is not None:
            return SentenceSupport(1.0, (), check.verbatim_match)
        match = next((match for match in check.matches if match.share > 0), None)
        features = measure_features(check)
        return SentenceSupport(estimate_support(features), list_reasons(features), match, features)


# Features ------------------------------------------------------------------------------------------------------------

SAME_SUBJECT = 0.7
"""Share of an assertion's weight that one sentence must hold before a `not` in one of the two counts against it."""


@dataclass(frozen=True, slots=True)
class Features:
    """Each is 0 where nothing speaks against the assertion, and larger the more does.

    Shares, from 0 to 1: ``unfamiliar``, the assertion's words that no passage holds; ``unphrased``, the neighbouring
    words that nowhere stand together in them; ``scattered``, the weight in words that the best two sentences in a row
    lack.

    ``unknown_numbers`` and ``unknown_names`` count what no passage holds. ``contradicted`` says that the sentence that
    holds nearly the same words negates one that the assertion does not, or the other way round.
    """

    unfamiliar: float
    unphrased: float
    scattered: float
    unknown_numbers: int
    unknown_names: int
    contradicted: bool


def measure_features(check: AssertionCheck) -> Features:
    """What speaks against an assertion in its passages; everything, where there is none."""
    assertion, passages = check.assertion, check.passages
    neighbours = list(pairs([word.stem for word in assertion.words], 1))
    together = frozenset().union(*(passage.pairs for passage in passages))
    numbers = frozenset().union(*(passage.numbers for passage in passages))
    return Features(
        unfamiliar=len(check.missing_words) / len(assertion.words),
        unphrased=sum(pair not in together for pair in neighbours) / len(neighbours) if neighbours else 0.0,
        scattered=1.0 - check.share_of_best_pair(),
        unknown_numbers=sum(not (values & numbers) for values in assertion.numbers),
        unknown_names=len(set(assertion.names) - check.stems),
        contradicted=_is_contradicted(check),
    )


def _is_contradicted(check: AssertionCheck) -> bool:
    if not check.matches or check.matches[0].share < SAME_SUBJECT:
        return False
    nearest = check.matches[0].sentence
    return contradicts(check.weights.keys(), check.assertion.text, nearest.stems, nearest.text)


# Probability ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SupportWeights:
    """Of a logistic model of "this sentence is not supported", by the features that are shares."""

    intercept: float
    unfamiliar: float
    unphrased: float
    scattered: float


# Fitted by logistic regression on the 2,228 sentences with an assertion of the 408 answers of RAGTruth's question
# answering half (Niu et al., "RAGTruth: A Hallucination Corpus", ACL 2024) that the project tunes on, 8 % of them
# marked by people: `manage.py evaluate_groundedness FILE --cross-validate` fits them again and says how they do on
# answers that they were not fitted on.
WEIGHTS = SupportWeights(-5.678, 0.473, 3.116, 2.043)

# How likely a sentence is wrong that is fine but for this. On the same sentences people marked 62 % of those with an
# unknown number, and 28 % of those with an unknown name; names count a little more, so that a name alone falls below
# the threshold. Contradictions are too rare there to tell: 3 in 1,000 good sentences seem to contradict their source,
# and so do 94 of 100 that a `not` was put into.
UNKNOWN_NUMBER = 0.6
UNKNOWN_NAME = 0.35
CONTRADICTED = 0.4


def _support_by_words(features: Features, weights: SupportWeights = WEIGHTS) -> float:
    """The probability that a sentence is supported as far as its words tell, numbers, names and negations aside."""
    against = (
        weights.intercept
        + weights.unfamiliar * features.unfamiliar
        + weights.unphrased * features.unphrased
        + weights.scattered * features.scattered
    )
    return 1.0 / (1.0 + math.exp(against))


def estimate_support(features: Features, weights: SupportWeights = WEIGHTS) -> float:
    """The probability that a sentence is supported, 0 to 1; its reasons for doubt count as independent (noisy-or)."""
    support = _support_by_words(features, weights)
    if features.unknown_numbers:
        support *= 1.0 - UNKNOWN_NUMBER
    if features.unknown_names:
        support *= 1.0 - UNKNOWN_NAME
    if features.contradicted:
        support *= 1.0 - CONTRADICTED
    return support


def list_reasons(features: Features) -> tuple[SupportReason, ...]:
    """What speaks against a sentence, the most telling first; none for one that is supported."""
    holds = {
        SupportReason.NUMBER: features.unknown_numbers > 0,
        SupportReason.NEGATION: features.contradicted,
        SupportReason.NAME: features.unknown_names > 0,
        SupportReason.WORDS: _support_by_words(features) < THRESHOLD,
    }
    return tuple(reason for reason, is_so in holds.items() if is_so)


def groundedness(supports: Iterable[float]) -> float:
    """The probability that every sentence of an answer is supported: the product; 1 for an answer that asserts nothing.

    One bad sentence spoils an answer, and a long one has more chances to hold one: the mean over sentences orders
    answers worse (AUROC 0.80 against 0.83), the worst sentence alone does too (0.81).
    """
    return math.prod(supports)
