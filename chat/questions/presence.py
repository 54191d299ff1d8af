"""Whether the fact that a question asks for stands in the passages: not only its subject, but the value. PURE.

A passage on the right subject that lacks the fact looks almost like an answer, to words and to vectors alike. What can
be told without reading: an amount, a duration or a phone number that is asked for has to stand in the text that comes
near the question, or right beside it; and something has to be told about a code that is asked for, which is not so
where it is only named as what replaces another one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from chat.grounding.words import stems
from chat.questions.types import Question, ValueKind
from chat.questions.values import find_values

# What is told about the day may be told as a time or a span ("three months after it began").
_ACCEPTED = {ValueKind.DATE: (ValueKind.DATE, ValueKind.TIME, ValueKind.DURATION)}
# How much nearer than any passage with such a value the nearest passage comes, for the value to be missing.
MISSING_GAP = 0.1
# The most that a missing value takes from the similarity: it may be said in a way that is not recognised.
LARGEST_GAP = 0.3

_WORD = re.compile(r"[^\W_]+")
# "Who is the head?" asks for a name; "who approves it?" may be answered by a role.
_ASKS_FOR_NAME = re.compile(
    r"(?:who|wie)(?:'?s| is| was| are| were| zijn| won| wrote| founded)\b|hoe heet"
    r"|(?:what|wat) is (?:the|de) na(?:me|am) (?:of|van)",
    re.IGNORECASE,
)
# Capital letters do not make a name of a role: "Technical Architects, Heads of Profession".
_ROLE = re.compile(
    r"(?:architect|head|developer|manager|engineer|lead|officer|director|founder|analyst|designer|owner|member|people"
    r"|team|product|profession|department|office|communit(?:y|ie)|company|afdeling|directeur|hoofd|medewerker|bestuur"
    r"|raad|commissie)s?",
    re.IGNORECASE,
)
# A span tells when something happens beside another event only: "within a year", "two weeks before", "every month".
_RELATES_BEFORE = re.compile(
    r"\b(?:within|in|after|before|by|every|each|at|until|binnen|na|over|om de|elke|iedere|vanaf|tot)\s(?:the\s|de\s)?$",
    re.IGNORECASE,
)
_RELATES_AFTER = re.compile(
    r"\W{1,2}(?:after|before|later|prior|ahead|in advance|from|of|following|na|nadat|voor|vóór|voordat|later"
    r"|van tevoren|daarna|daarvoor)\b",
    re.IGNORECASE,
)
_RELATES = re.compile(
    r"(?:every|each|within|elke?|ieder[e]?|binnen)\b|(?:dai|week|month|quarter|year|annual)", re.IGNORECASE
)
_COUNTED = re.compile(
    r"\b(?:how many|number of) (?!(?:is|was|of|are|do|does|much|times|people|different|percent)\b)(?P<noun>[^\W\d_]+)",
    re.IGNORECASE,
)
_REPLACEMENT = re.compile(
    r"(?<![^\W_])(?:replace[sd]|supersede[sd]|successor|obsolete[sd]|vervang(?:en|t)|opgevolgd|opvolger)"
    r"[\w ]{0,20}: ([^;\n]{1,100}+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PresencePassage:
    """A sentence, an item or a row of a source, under its ``heading``.

    ``source`` tells the sources apart; passages of one source are in the order of its text. ``similarity`` to the
    question lies in [0, 1]; 0 for what was not compared.
    """

    source: int
    text: str
    heading: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Presence:
    """``similarity`` is that of the closest passage, ``value_similarity`` that of the closest one that holds a value of
    the kind asked for, in [0, 1]; equal for a question that asks for no such value. ``missing`` names the kind of value
    that is not beside what is asked about, None when nothing is known to be missing.
    """

    similarity: float
    value_similarity: float
    missing: ValueKind | None = None

    @property
    def is_present(self) -> bool:
        return self.missing is None


def assess_presence(question: Question, passages: Sequence[PresencePassage]) -> Presence:
    """Whether the passages hold the kind of value that the question asks for; it is present when it asks for none.

    A value counts for the passage that it stands in, under its heading, and for the passage before and after: "Dogs are
    welcome. It costs five euros."
    """
    similarity = max((passage.similarity for passage in passages), default=0.0)
    asked = [part for part in question.parts or (question,) if part.expects is not None]
    if not similarity or len(asked) < len(question.parts or (question,)):
        return Presence(similarity, similarity)
    by_similarity = sorted(range(len(passages)), key=lambda at: -passages[at].similarity)
    # Of several things that are asked at once, one that is there is worth an answer.
    value_similarity = max(_value_similarity(part, passages, by_similarity) for part in asked)
    missing = asked[0].expects if similarity - value_similarity >= MISSING_GAP else None
    return Presence(similarity, max(value_similarity, similarity - LARGEST_GAP), missing)


def _value_similarity(question: Question, passages: Sequence[PresencePassage], by_similarity: Sequence[int]) -> float:
    @functools.cache
    def holds(at: int) -> bool:
        return _holds_value(question, passages[at])

    for at in by_similarity:
        if not passages[at].similarity:
            break
        beside = (near for near in (at, at - 1, at + 1) if 0 <= near < len(passages))
        if any(passages[near].source == passages[at].source and holds(near) for near in beside):
            return passages[at].similarity
    return 0.0


def without_replacements(text: str) -> str:
    """The text of a table without the cells that name what replaces a row: nothing is told about that there."""
    return _REPLACEMENT.sub(" ", text)


def _holds_value(question: Question, passage: PresencePassage) -> bool:
    counted = counted_stems(question)
    if counted and not counted & set(stems(f"{passage.heading} {passage.text}")):
        return False
    return any(find_answer_values(question, text) for text in (passage.text, passage.heading))


def find_answer_values(question: Question, text: str) -> list[tuple[int, int]]:
    """Start and end of the values of the kind that the question asks for and that it does not name itself, in the order
    of the text; none for questions that ask for no such value."""
    if question.expects is None:
        return []
    asked = set(_words(question.text))
    by_name = question.expects is ValueKind.PERSON and bool(_ASKS_FOR_NAME.match(question.text.strip()))
    values = []
    for kind in _ACCEPTED.get(question.expects, (question.expects,)):
        for start, end in find_values(text, kind):
            value = text[start:end]
            words = _words(value)
            # What the question names is not its answer; neither are capital letters alone a person, nor does a span
            # alone tell a day.
            is_other_span = kind is ValueKind.DURATION is not question.expects and not _tells_when(text, start, end)
            if set(words) <= asked or is_other_span or (kind is ValueKind.PERSON and value.isupper()):
                continue
            if not by_name or _holds_name(value, asked):
                values.append((start, end))
    return sorted(values)


def _tells_when(text: str, start: int, end: int) -> bool:
    return bool(
        _RELATES.match(text, start)
        or _RELATES_BEFORE.search(text[max(0, start - 16) : start])
        or _RELATES_AFTER.match(text, end)
    )


def _holds_name(person: str, asked: set[str]) -> bool:
    """Whether a person is named ("mevrouw Jansen"), and not only told by a role ("the director")."""
    words = _WORD.findall(person)
    named = [word for word in words if word[0].isupper() and not _ROLE.fullmatch(word)]
    return (
        bool(named)
        and not any(_ROLE.fullmatch(word) and word[0].isupper() for word in words)
        and not any(word.lower() in asked for word in named)
    )


def counted_stems(question: Question) -> set[str]:
    """The stem of what is counted: "shares" in "How many shares ..."; empty for other questions.

    In Dutch, where compounds and other words for the same count as often, it takes more answers than it finds missing.
    """
    match = _COUNTED.search(question.text) if question.language != "nl" else None
    return set(stems(match["noun"])) if match else set()


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]
