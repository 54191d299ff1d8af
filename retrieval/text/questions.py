"""Decide whether two questions ask for the same thing."""

from __future__ import annotations

import re
import unicodedata

from retrieval.text.word_lists import fill_in

LEAST_LIKENESS = 0.9
"""Least likeness (1 is equal) of questions that ask the same: a cosine of 0.981 with multilingual-e5-small."""

# "How many" also matches "how", so it is first.
_KINDS = {
    kind: re.compile(fill_in(rf"\b<{kind}>\b", "questions"), re.IGNORECASE)
    for kind in ("when", "who", "where", "why", "how_many", "how")
}
_WORD = re.compile(r"\w+")


def normalize_question(question: str) -> str:
    words = _WORD.findall(unicodedata.normalize("NFKC", question).casefold())
    return " ".join(words) or " ".join(question.split())


def have_same_kind_and_codes(one: str, other: str) -> bool:
    return _find_question_kind(one) == _find_question_kind(other) and _find_words_with_digits(
        one
    ) == _find_words_with_digits(other)


def _find_question_kind(question: str) -> str:
    found = [(match.start(), kind) for kind, words in _KINDS.items() if (match := words.search(question))]
    return min(found, key=lambda pair: pair[0])[1] if found else ""


def _find_words_with_digits(question: str) -> frozenset[str]:
    words = _WORD.findall(question.casefold())
    return frozenset(word for word in words if any(character.isdigit() for character in word))
