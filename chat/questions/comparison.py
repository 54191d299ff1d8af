"""The things that a question compares. PURE."""

from __future__ import annotations

import re
from dataclasses import replace

from chat.questions.types import Question, QuestionKind

_NAMES = (
    re.compile(r"\b(?:between|tussen) (?P<first>.{1,60}?) (?:and|en) (?P<second>.{1,60})", re.IGNORECASE),
    re.compile(
        r"^(?P<first>.{1,60}?) (?:vs\.?|versus|compared to|compared with|vergeleken met) (?P<second>.{1,60})", re.I
    ),
    re.compile(
        r"\b(?:compare|vergelijk) (?P<first>.{1,60}?) (?:and|with|to|en|met) (?P<second>.{1,60})", re.IGNORECASE
    ),
)
_ARTICLE = re.compile(r"^(?:an?|the|de|het|een) ", re.IGNORECASE)


def find_compared(question: Question) -> tuple[Question, ...]:
    """For each of two things that are compared the question what it is; empty for other questions.

    The answers to both stand in two places more often than in one.
    """
    if question.kind is not QuestionKind.COMPARISON:
        return ()
    text = " ".join(question.text.split()).rstrip(" ?.!")
    for pattern in _NAMES:
        if match := pattern.search(text):
            names = [_ARTICLE.sub("", match[name].strip()) for name in ("first", "second")]
            if all(names):
                return tuple(replace(question, text=name, kind=QuestionKind.DEFINITION, topic=name) for name in names)
    return ()
