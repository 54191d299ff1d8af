"""Add the product code of an earlier question to a follow-up with a pronoun: "MX-9920-W: What does it cost?"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.search.understanding.dependent_questions import CONJUNCTIONS, has_pronoun
from retrieval.search.understanding.named_things import find_alphanumeric_codes
from retrieval.text.terms import find_identifiers
from retrieval.text.word_lists import fill_in
from retrieval.types import Turn

MOST_BETWEEN = 4
_CAMEL = re.compile(r"(?<![^\W_])[a-z]+(?:[A-Z][a-z]+)+(?![^\W_])")
# In these phrases "it" does not refer to an earlier question ("is it possible").
_EXPLETIVE = re.compile(fill_in(r"\b<not_pointing>\b", "questions"), re.IGNORECASE)


def add_identifier_from_history(question: str, history: Sequence[Turn]) -> str:
    """Put the code (or camelCase name) of an earlier question before a question that refers to it by a pronoun.

    The question is unchanged if it has a code itself.
    """
    if find_codes_and_names(question) or not _is_dependent(question):
        return question
    for turn in reversed(history[-MOST_BETWEEN:]):
        if names := find_codes_and_names(turn.question):
            return f"{names[0]}: {_drop_conjunction(question)}" if len(names) == 1 else question
        if not _is_dependent(turn.question):
            break
    return question


def remove_identifier_prefix(question: str) -> str:
    name, mark, rest = question.partition(": ")
    return rest if mark and find_codes_and_names(name) == [name] else question


def find_codes_and_names(question: str) -> list[str]:
    codes = find_alphanumeric_codes(question)
    written = [way for whole, way in find_identifiers(question) if whole in codes]
    return list(dict.fromkeys([*written, *_CAMEL.findall(question)]))


def _is_dependent(question: str) -> bool:
    return not _EXPLETIVE.search(question) and (has_pronoun(question) or _drop_conjunction(question) != question)


def _drop_conjunction(question: str) -> str:
    first, _, rest = question.partition(" ")
    return rest.strip() if rest.strip() and first.casefold().strip(",") in CONJUNCTIONS else question
