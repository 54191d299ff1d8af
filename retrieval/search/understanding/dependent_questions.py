"""Find the signs that a question needs the questions before it. PURE."""

from __future__ import annotations

import re

# The words below are English and Dutch.
LANGUAGES = frozenset(["en", "nl"])
CONJUNCTIONS = frozenset(["and", "or", "but", "en", "of", "maar"])
# Shorter questions, and longer ones that begin with "and", need the questions before them.
FEW_WORDS, FEW_WORDS_AFTER_AND = 3, 5
# "het" only at the end, because elsewhere it is an article.
_POINTING = frozenset(
    """
    it its that this these those they them their he him his she one ones dat dit die deze hij zij ze hem haar
    """.split()  # noqa: SIM905
)
_POINTING_AT_THE_END = "het"
_WORD = re.compile(r"[^\W\d_]+")


def points_back(question: str) -> bool:
    """Return whether the question has a pronoun."""
    words = _WORD.findall(question.casefold())
    return bool(_POINTING.intersection(words)) or words[-1:] == [_POINTING_AT_THE_END]


def begins_with_conjunction(question: str) -> bool:
    return bool(CONJUNCTIONS.intersection(_WORD.findall(question.casefold())[:1]))


def has_few_words(question: str) -> bool:
    """Return whether the question is too short to be understood alone."""
    most = FEW_WORDS_AFTER_AND if begins_with_conjunction(question) else FEW_WORDS
    return len(question.split()) <= most
