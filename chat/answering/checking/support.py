"""Estimate the probability that the cited passages support a sentence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from operator import mul

from chat.answering.checking.words import (
    StemmedWord,
    compute_stem_weight,
    contradicts,
    find_stems,
    iterate_word_pairs,
    list_stems,
    read_asserted_numbers,
    read_numbers,
    split_words,
)
from retrieval.text.sentences import split_sentences
from retrieval.text.word_lists import fill_in, join_lists, read_sections, read_words

# A sentence with fewer content words asserts something only if it contains a number.
FEWEST_WORDS = 2

_ABOUT_SOURCES = re.compile(
    fill_in(
        r"""
        \(\s*(?:<reference>[:.]?\s*)?(?:<see>\s+)?<sources>\s*\#?\d[^)]*\)
        | \b<according_to>\ (?:<the>\ )*(?:<given_in>\ )*(?:<sources>|<text>)
          (?:\ <given>)?(?:\s*\d+(?:\s*(?:,|&|<and>)\s*\d+)*)?,?
        | \b<sources>\s+\d+(?:\s*(?:,|&|<and>)\s*(?:<sources>\s*)?\d+)*
        """,
        "answers",
    ),
    re.IGNORECASE | re.VERBOSE,
)
_SAYS_NOTHING = re.compile(
    fill_in(
        r"""
        \b(?:<sources>|<matter>)\b [^.;:]{0,40} \b<absent>\b [^.;:]{0,30}
        \b(?:<mention>|<provide>\b .{0,30}\b<details>)\b
        | <says_nothing>
        | \b<there_is>\ <no>\b .{0,30}\b<details>\b
        """,
        "answers",
    ),
    re.IGNORECASE | re.VERBOSE,
)
_COURTESY = re.compile(fill_in(r"\s*<courtesy>", "answers"), re.IGNORECASE)
# _CITED also matches unknown source numbers. _PARTICLE matches a "No," that does not negate the sentence after it.
_CITED = re.compile(r"\[\d{1,3}\](?=[ \t]*+(?:[.,;:!?)|\[]|\n|\Z))")
_PARTICLE = re.compile(fill_in(r"\A\s*<particle>\b[,.:;!]", "answers"), re.IGNORECASE)
_ONLY_PARTICLE = re.compile(fill_in(r"[\s*_]*<particle>[\s*_.!]*", "answers"), re.IGNORECASE)
_DECLINES = re.compile(fill_in(r"\s*<declines>", "answers"), re.IGNORECASE)
_LIST_MARK = re.compile(r"[ \t]*(?:[-*+•]|\(?\d{1,3}[.)])[ \t]+")
# A capitalised word after _ENDING begins a sentence, so it may not be a name. The full stop of a title such as "Dr."
# does not end a sentence.
_TITLE = "".join(rf"(?<!\b{title})" for title in sorted(read_words("answers", "titles")))
_ENDING = re.compile(rf"{_TITLE}\.|[!?:;|•\n]")
_JOINING = frozenset(find_stems(join_lists(read_sections("answers"), "joining")))


@dataclass(frozen=True, slots=True)
class Assertion:
    """The parts of a sentence that can be checked against sources.

    ``words`` are in order, with repeats; ``names`` are the stems of proper names. Each element of ``numbers`` has the
    values that one number can mean: "1,234" is 1234 or 1.234.
    """

    text: str
    words: tuple[StemmedWord, ...]
    names: tuple[str, ...]
    numbers: tuple[frozenset[str], ...]


def extract_assertion(sentence: str) -> Assertion | None:
    """Return the parts of a sentence that sources can support; None if it asserts nothing, such as a question."""
    stripped = sentence.rstrip(" \t\n*_`")
    if stripped.endswith("?") or _SAYS_NOTHING.search(sentence):
        return None
    mark = _LIST_MARK.match(sentence)
    text = _replace_by_spaces(mark) + sentence[mark.end() :] if mark else sentence
    text = _PARTICLE.sub(
        _replace_by_spaces, _ABOUT_SOURCES.sub(_replace_by_spaces, _CITED.sub(_replace_by_spaces, text))
    )
    words = tuple(word for word in split_words(text) if word.stem not in _JOINING)
    numbers = read_asserted_numbers(text)
    if not numbers and (len(words) < FEWEST_WORDS or stripped.endswith(":") or _COURTESY.match(sentence)):
        return None
    return Assertion(text, words, tuple(_find_names(text, words)), numbers) if words else None


def is_yes_or_no(sentence: str) -> bool:
    return _ONLY_PARTICLE.fullmatch(sentence) is not None


def is_refusal_or_courtesy(sentence: str) -> bool:
    return bool(_SAYS_NOTHING.search(sentence) or _DECLINES.match(sentence) or _COURTESY.match(sentence))


def _replace_by_spaces(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _find_names(text: str, words: Sequence[StemmedWord]) -> Iterator[str]:
    for word in words:
        if word.end - word.start > 1 and text[word.start].isupper() and not _opens_sentence(text, word.start):
            yield word.stem


def _opens_sentence(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \t\"'“‘(*_`")
    return not before or text[at - 1] in '"“‘(*' or _ENDING.match(before, len(before) - 1) is not None


# Two content words form a pair if they are at most this many positions apart.

PHRASE_REACH = 2

_WORD = re.compile(r"\w")
_EDGES = " \t\n*_`#>-•"


@dataclass(frozen=True)
class EvidenceSentence:
    text: str
    start: int
    end: int
    context: str = ""

    @cached_property
    def _stems_in_order(self) -> tuple[str, ...]:
        return list_stems(self.context) + list_stems(self.text)

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(self._stems_in_order)

    @cached_property
    def word_pairs(self) -> frozenset[tuple[str, str]]:
        return frozenset(iterate_word_pairs(self._stems_in_order, PHRASE_REACH))


@dataclass(frozen=True)
class EvidencePassage:
    marker: int
    text: str
    sentences: tuple[EvidenceSentence, ...]
    title: str = ""

    @cached_property
    def title_stems(self) -> frozenset[str]:
        return frozenset(list_stems(self.title))

    @cached_property
    def stems(self) -> frozenset[str]:
        return self.title_stems.union(*(sentence.stems for sentence in self.sentences))

    @cached_property
    def word_pairs(self) -> frozenset[tuple[str, str]]:
        return frozenset().union(*(sentence.word_pairs for sentence in self.sentences))

    @cached_property
    def numbers(self) -> frozenset[str]:
        texts = (f"{sentence.context} {sentence.text}" for sentence in self.sentences)
        return read_numbers(self.title).union(*map(read_numbers, texts))

    def holds_verbatim(self, words: str) -> bool:
        text = " ".join(self.text.split())
        at = text.find(words)
        while at >= 0:
            if not _WORD.match(text[at - 1 : at]) and not _WORD.match(text, at + len(words)):
                return True
            at = text.find(words, at + 1)
        return False


def split_passage(marker: int, text: str, title: str = "") -> EvidencePassage:
    sentences = tuple(
        EvidenceSentence(text[start:end], start, end) for start, end, _ in split_sentences(text, 0, len(text))
    )
    return EvidencePassage(marker, text, sentences, title)


@dataclass(frozen=True, slots=True)
class SentenceMatch:
    """A sentence of a passage that is compared with an assertion.

    ``share`` is the part of the assertion's words in it, from 0 to 1; rare words count more.
    """

    passage: EvidencePassage
    sentence: EvidenceSentence
    share: float


class DoubtReason(StrEnum):
    NUMBER = "number"
    NAME = "name"
    NEGATION = "negation"
    WORDS = "words"
    UNCITED = "uncited"


# A sentence with less support than this is marked as doubtful and is not cited. This limit finds 64 % of the bad
# sentences to which WEIGHTS was fitted, and 13 % of the good ones.
THRESHOLD = 0.8


@dataclass(frozen=True, slots=True)
class SentenceSupport:
    """How well the sources support a sentence of the answer, from 0 to 1.

    ``match`` is the most similar sentence of a passage, if any.
    """

    support: float
    reasons: tuple[DoubtReason, ...]
    match: SentenceMatch | None
    verbatim: bool = False

    @property
    def is_supported(self) -> bool:
        return self.support >= THRESHOLD


# Only two sentences with this share of common words have the same subject and can contradict each other.
SAME_SUBJECT = 0.7


class SupportScorer:
    def __init__(self, passages: Sequence[EvidencePassage]) -> None:
        self._passages = tuple(passages)
        self._sentence_count = sum(len(passage.sentences) for passage in passages)
        self._holders = Counter(stem for passage in passages for each in passage.sentences for stem in each.stems)

    def score(self, text: str, markers: Collection[int] = ()) -> SentenceSupport | None:
        """Return how well the passages cited by ``markers`` support a sentence; None if the sentence asserts nothing.

        If ``markers`` is empty, all passages are compared.
        """
        assertion = extract_assertion(text)
        if assertion is None:
            return None
        cited = [passage for passage in self._passages if passage.marker in markers]
        passages = cited or self._passages
        uncited = () if cited else (DoubtReason.UNCITED,)
        stems = {word.stem for word in assertion.words}
        weights = {stem: compute_stem_weight(self._holders[stem], self._sentence_count) for stem in stems}
        matches = [
            SentenceMatch(passage, sentence, _compute_stem_share(weights, sentence.stems))
            for passage in passages
            for sentence in passage.sentences
        ]
        matches.sort(key=lambda match: -match.share)
        words = " ".join(assertion.text.strip(_EDGES).split())
        holders = {passage.marker for passage in passages if passage.holds_verbatim(words)}
        if holder := next((match for match in matches if match.passage.marker in holders), None):
            return SentenceSupport(1.0, uncited, holder, verbatim=True)
        support, reasons = estimate_support(
            _measure_doubts(assertion, passages, weights), _find_doubts(assertion, passages, matches)
        )
        nearest = matches[0] if matches and matches[0].share > 0 else None
        return SentenceSupport(support, (*reasons, *uncited), nearest)


def _compute_stem_share(weights: Mapping[str, float], stems: AbstractSet[str]) -> float:
    return sum(weights[stem] for stem in weights.keys() & stems) / sum(weights.values())


def _measure_doubts(
    assertion: Assertion, passages: Sequence[EvidencePassage], weights: Mapping[str, float]
) -> tuple[float, float, float]:
    """Return three reasons to doubt an assertion, each from 0 (no doubt) to 1, in the order of WEIGHTS.

    These are shares of the assertion: words that no passage contains, word pairs that no passage contains, and words
    that the best matching pair of adjacent sentences does not contain.
    """
    known: frozenset[str] = frozenset().union(*(passage.stems for passage in passages))
    together: frozenset[tuple[str, str]] = frozenset().union(*(passage.word_pairs for passage in passages))
    neighbours = list(iterate_word_pairs([word.stem for word in assertion.words], 1))
    best = max(
        (
            _compute_stem_share(
                weights, passage.title_stems.union(*(each.stems for each in passage.sentences[at : at + 2]))
            )
            for passage in passages
            for at in range(len(passage.sentences))
        ),
        default=0.0,
    )
    return (
        sum(word.stem not in known for word in assertion.words) / len(assertion.words),
        sum(pair not in together for pair in neighbours) / len(neighbours) if neighbours else 0.0,
        1.0 - best,
    )


def _find_doubts(
    assertion: Assertion, passages: Sequence[EvidencePassage], matches: Sequence[SentenceMatch]
) -> Iterator[DoubtReason]:
    numbers: frozenset[str] = frozenset().union(*(passage.numbers for passage in passages))
    if not all(values & numbers for values in assertion.numbers):
        yield DoubtReason.NUMBER
    if not set(assertion.names) <= frozenset().union(*(passage.stems for passage in passages)):
        yield DoubtReason.NAME
    if matches and matches[0].share >= SAME_SUBJECT:
        nearest, stems = matches[0].sentence, {word.stem for word in assertion.words}
        if contradicts(stems, assertion.text, nearest.stems, nearest.text):
            yield DoubtReason.NEGATION


# The weights of a logistic regression on the tuning part of RAGTruth's question answering (Niu et al., "RAGTruth: A
# Hallucination Corpus", ACL 2024). Results: docs/adr/0012-support-of-sentences.md.
INTERCEPT = -5.678
WEIGHTS = (0.473, 3.116, 2.043)

# Each reason for doubt multiplies the probability that a sentence is supported. People marked 62 % of the sentences
# with an unknown number as unsupported, and 28 % of the sentences with an unknown name. One reason is enough to make a
# sentence doubtful.
FACTORS = {DoubtReason.NUMBER: 0.4, DoubtReason.NEGATION: 0.6, DoubtReason.NAME: 0.65}


def estimate_support(shares: Sequence[float], doubts: Iterable[DoubtReason]) -> tuple[float, tuple[DoubtReason, ...]]:
    """Return the support of a sentence, from 0 to 1, and the reasons to doubt it, the strongest first.

    ``shares`` is the result of :func:`_measure_doubts`. ``doubts`` are further reasons. Each of these multiplies the
    support by its factor in FACTORS.
    """
    found = set(doubts)
    by_words = 1.0 / (1.0 + math.exp(INTERCEPT + sum(map(mul, WEIGHTS, shares))))
    reasons = [reason for reason in FACTORS if reason in found]
    support = by_words * math.prod(FACTORS[reason] for reason in reasons)
    return support, (*reasons, *([DoubtReason.WORDS] if by_words < THRESHOLD else []))


def estimate_groundedness(supports: Iterable[float]) -> float:
    """Return the probability that every sentence of an answer is supported: the product of ``supports``.

    The result is 1 if ``supports`` is empty.
    """
    return math.prod(supports)
