"""What a question asks for. PURE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class QuestionKind(StrEnum):
    """Decides which kind of block answers a question. ``FACT`` asks for a value, which :class:`ValueKind` names."""

    FACT = "fact"
    YES_NO = "yes_no"
    DEFINITION = "definition"
    PROCEDURE = "procedure"
    LIST = "list"
    REASON = "reason"
    COMPARISON = "comparison"
    COUNT = "count"
    SUPERLATIVE = "superlative"
    CODE = "code"
    OTHER = "other"


class ValueKind(StrEnum):
    """What must stand in a text that answers a question of this sort.

    ``DURATION`` includes how often something happens, ``DATE`` everything that a "when" asks for but a time of day.
    """

    NUMBER = "number"
    AMOUNT = "amount"
    DURATION = "duration"
    DATE = "date"
    TIME = "time"
    PERSON = "person"
    PLACE = "place"
    CONTACT = "contact"


@dataclass(frozen=True, slots=True)
class Question:
    """``topic`` is the question without the words that only ask. ``parts`` are the questions of one that asks for
    several things at once, each complete; empty for a single one.
    """

    text: str
    kind: QuestionKind
    expects: ValueKind | None
    topic: str
    language: str
    parts: tuple[Question, ...] = ()
