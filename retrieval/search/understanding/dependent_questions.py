"""Find the signs that a question depends on the questions before it. PURE."""

from __future__ import annotations

import re

from retrieval.text.language import identify_language

LANGUAGES = frozenset(["en", "nl"])
CONJUNCTIONS = frozenset(["and", "or", "but", "en", "of", "maar"])
# A question with at most FEW_WORDS words depends on earlier ones. After a conjunction, the limit is
# FEW_WORDS_AFTER_AND.
FEW_WORDS, FEW_WORDS_AFTER_AND = 3, 5
# Dutch "het" is a pronoun only at the end of a question; elsewhere it is an article.
_POINTING = frozenset(
    """
    it its that this these those they them their he him his she one ones dat dit die deze hij zij ze hem haar
    """.split()  # noqa: SIM905
)
_POINTING_AT_THE_END = "het"
# Dutch adverbs that contain a pronoun: "daarop" means "on it". "daarom" (therefore) and "daarna" (then) do not.
_POINTING_ADVERB = re.compile(
    r"\b(?:er|daar|hier)(?:aan|af|achter|bij|binnen|boven|door|in|langs|mee|naar|naast|omheen|onder|op|over|tegen|tussen|uit"
    r"|van|vanaf|voor)\b"
)
_WORD = re.compile(r"[^\W\d_]+")


def points_back(question: str) -> bool:
    """Return whether the question has a pronoun, or a Dutch adverb such as "daarop" that contains a pronoun."""
    words = _WORD.findall(question.casefold())
    has_pronoun = bool(_POINTING.intersection(words)) or words[-1:] == [_POINTING_AT_THE_END]
    return has_pronoun or _POINTING_ADVERB.search(question.casefold()) is not None


def begins_with_conjunction(question: str) -> bool:
    return bool(CONJUNCTIONS.intersection(_WORD.findall(question.casefold())[:1]))


def is_in_another_language(question: str, earlier: str) -> bool:
    """Return whether the question and ``earlier`` are in different languages; False if the question depends on it."""
    if points_back(question) or begins_with_conjunction(question) or has_few_words(question):
        return False
    languages = identify_language(question), identify_language(earlier)
    return all(languages) and languages[0] != languages[1]


def has_few_words(question: str) -> bool:
    """Return whether the question is too short to be understood without earlier questions."""
    most = FEW_WORDS_AFTER_AND if begins_with_conjunction(question) else FEW_WORDS
    return len(question.split()) <= most
