"""Detect by pronouns, conjunctions and length whether a question depends on the questions before it."""

from __future__ import annotations

import re

from retrieval.text.language import identify_language
from retrieval.text.word_lists import fill_in, read_sections, read_words

LANGUAGES = frozenset(read_sections("questions"))
CONJUNCTIONS = read_words("questions", "conjunctions")
# Questions with at most this many words depend on earlier questions. The second limit is for a question that begins
# with a conjunction.
FEW_WORDS, FEW_WORDS_AFTER_AND = 3, 5
_POINTING = read_words("questions", "pointing")
_POINTING_AT_THE_END = read_words("questions", "pointing_at_the_end")
_POINTING_ADVERB = re.compile(fill_in(r"\b<pointing_adverbs>\b", "questions"))
_WORD = re.compile(r"[^\W\d_]+")


def has_pronoun(question: str) -> bool:
    """Return whether the question has a pronoun, or a Dutch adverb such as "daarop" ("on that")."""
    words = _WORD.findall(question.casefold())
    has_word = bool(_POINTING.intersection(words)) or bool(_POINTING_AT_THE_END.intersection(words[-1:]))
    return has_word or _POINTING_ADVERB.search(question.casefold()) is not None


def begins_with_conjunction(question: str) -> bool:
    return bool(CONJUNCTIONS.intersection(_WORD.findall(question.casefold())[:1]))


def is_in_another_language(question: str, earlier: str) -> bool:
    """Return whether both questions are complete and in different languages; False if a language is unclear."""
    if has_pronoun(question) or begins_with_conjunction(question) or has_few_words(question):
        return False
    languages = identify_language(question), identify_language(earlier)
    return all(languages) and languages[0] != languages[1]


def has_few_words(question: str) -> bool:
    """Return whether the question is too short to be understood without earlier questions."""
    most = FEW_WORDS_AFTER_AND if begins_with_conjunction(question) else FEW_WORDS
    return len(question.split()) <= most
