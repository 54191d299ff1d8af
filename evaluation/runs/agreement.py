"""Compare an answer with the expected answer.

Each metric is in [0, 1], better when higher, and None if it does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from chat.answering.checking.citations import remove_markers
from chat.answering.checking.support import EvidencePassage, SupportScorer, split_passage
from retrieval.text.language import detect_language
from retrieval.text.sentences import split_sentences
from retrieval.text.word_lists import read_words

if TYPE_CHECKING:
    from chat.types import CheckedStatement

# A number with decimals is one word, so "12.5" does not contain "5".
_TOKEN = re.compile(r"[^\W_]+(?:(?<=\d)[.,:](?=\d)[^\W_]+)*")
_ARTICLES = read_words("answers", "articles")


RIGHT_AGREEMENT = 0.7


def measure_agreement(text: str, *, refused: bool, expected: str, expects_refusal: bool = False) -> float | None:
    """Return how well a reply agrees with the expected one, from 0 to 1; None if the two cannot be compared.

    - A refusal is expected: 1 for a refusal, 0 for an answer.
    - An answer is expected: 0 for a refusal, 1 if ``contains_answer``, and otherwise the mean support of the expected
      sentences.
    """
    if expects_refusal:
        return float(refused)
    if not expected:
        return None
    return 0.0 if refused else _measure_support(expected, split_passage(1, remove_markers(text)))


def measure_groundedness(statements: Sequence[CheckedStatement], *, refused: bool) -> float | None:
    """Return the share of an answer's checked sentences that the sources support.

    The result is None if the answer is a refusal, or if no sentence was checked.
    """
    measured = [statement.supported for statement in statements if statement.supported is not None]
    return None if refused or not measured else sum(measured) / len(measured)


def _measure_support(expected: str, reply: EvidencePassage) -> float | None:
    if contains_answer(reply.text, [expected]):
        return 1.0
    reply_language, expected_language = detect_language(reply.text), detect_language(expected)
    if reply_language and expected_language and reply_language != expected_language:
        return None
    sentences = [expected[start:end] for start, end, _ in split_sentences(expected, 0, len(expected))]
    scorer = SupportScorer([reply])
    # A sentence that asserts no fact has no support and is left out of the mean.
    supports = [found.support for sentence in sentences if (found := scorer.score(sentence))]
    return sum(supports) / len(supports) if supports else 0.0


def contains_answer(text: str, answers: Iterable[str]) -> bool:
    """Return whether ``text`` contains the words of one of the ``answers``, whole and in order.

    Case, articles, white space and punctuation between words are ignored. Source, which also ignores punctuation inside
    words: Rajpurkar, Zhang, Lopyrev, Liang, "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016.
    """
    words = f" {_normalize(text)} "
    return any(answer and f" {answer} " in words for answer in map(_normalize, answers))


def _normalize(text: str) -> str:
    return " ".join(word for word in _TOKEN.findall(text.casefold()) if word not in _ARTICLES)
