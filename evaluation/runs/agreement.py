"""How far an answer and its citations agree with what was expected. PURE.

Each metric lies in [0, 1], is better when higher, and is None for a reply that it says nothing about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from chat.answering.citations import remove_markers
from chat.answering.support import THRESHOLD, EvidencePassage, Statement, SupportScorer, cut_passage
from retrieval.text.language import detect_language
from retrieval.text.sentences import split_sentences

if TYPE_CHECKING:
    from chat.types import CheckedStatement

# A decimal is one word: "12.5" does not hold "5".
_TOKEN = re.compile(r"[^\W_]+(?:(?<=\d)[.,:](?=\d)[^\W_]+)*")
_ARTICLES = frozenset({"a", "an", "the", "de", "het", "een"})


def is_right(agreement: float) -> bool:
    """Whether a reply with this agreement counts as right: from there on a sentence counts as supported in the chat."""
    return agreement >= THRESHOLD


def agreement(text: str, *, refused: bool, expected: str, expects_refusal: bool = False) -> float | None:
    """How far the reply says what was expected.

    Where a refusal is expected: 1 for one, else 0. Where an answer is: 0 for a refusal; 1 when the reply holds the
    words of the expected answer one after another (:func:`holds_answer`); else the mean over the expected answer's
    sentences of the probability that the reply bears them out, the reply being the only passage. None for an expected
    answer in another language than the reply, unless its words are held, and where no whole answer is expected.
    """
    if expects_refusal:
        return float(refused)
    if not expected:
        return None
    return 0.0 if refused else _borne_out(expected, [cut_passage(1, remove_markers(text))])


def groundedness(statements: Sequence[CheckedStatement], *, refused: bool) -> float | None:
    """The share of the reply's sentences that its sources support, of those that could be measured.

    None for a refusal, and where no sentence could be measured.
    """
    measured = [statement.supported for statement in statements if statement.supported is not None]
    return None if refused or not measured else sum(measured) / len(measured)


def _borne_out(expected: str, passages: Sequence[EvidencePassage]) -> float | None:
    if any(holds_answer(passage.text, [expected]) for passage in passages):
        return 1.0
    reply_language = detect_language(" ".join(passage.text for passage in passages))
    expected_language = detect_language(expected)
    if reply_language and expected_language and reply_language != expected_language:
        return None
    sentences = [expected[start:end] for start, end, _ in split_sentences(expected, 0, len(expected))]
    judged = SupportScorer(passages).score([Statement(sentence) for sentence in sentences])
    # A sentence that claims nothing, such as a bare word, is supported by its words alone, which are not there.
    supports = [one.support for one in judged if one is not None]
    return sum(supports) / len(supports) if supports else 0.0


def holds_answer(text: str, answers: Iterable[str]) -> bool:
    """Whether ``text`` holds the words of one of the ``answers``, whole and one after another.

    Case, punctuation, white space and articles do not count, so that "39" is not held by "1939", but "World War II" is
    by "the World-War II". An answer of articles and punctuation alone is held by nothing.

    Source: the normalization of Rajpurkar, Zhang, Lopyrev, Liang, "SQuAD: 100,000+ Questions for Machine Comprehension
    of Text", EMNLP 2016, without its removal of punctuation inside words.
    """
    words = f" {_normalize(text)} "
    return any(answer and f" {answer} " in words for answer in map(_normalize, answers))


def _normalize(text: str) -> str:
    return " ".join(word for word in _TOKEN.findall(text.casefold()) if word not in _ARTICLES)
