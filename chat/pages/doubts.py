from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat.answering.checking.citations import MARKER
from chat.payload_types import StatementPayload

_REASONS = {
    "number": gettext_lazy("a number in it is not in the source"),
    "name": gettext_lazy("a name in it is not in the source"),
    "negation": gettext_lazy("the source seems to say the opposite"),
    "words": gettext_lazy("the source does not say this in these words"),
    "uncited": gettext_lazy("it names no source"),
}


_CLOSING = re.compile(rf"(?:[ \t]*{MARKER.pattern})*[.!?…]?(?:[ \t]*{MARKER.pattern})*")


@dataclass(frozen=True, slots=True)
class DoubtfulRange:
    start: int
    end: int
    reason: str


def find_doubtful_ranges(statements: Iterable[StatementPayload]) -> tuple[DoubtfulRange, ...]:
    doubted = [
        DoubtfulRange(
            statement["start"],
            statement["end"],
            " ".join(f"{capfirst(describe_reason(reason))}." for reason in statement["reasons"] or ["words"]),
        )
        for statement in statements
        if statement["supported"] is False
    ]
    return tuple(sorted(doubted, key=lambda doubt: doubt.start))


def count_checked_statements(statements: Iterable[StatementPayload]) -> int:
    return sum(statement["supported"] is not None for statement in statements)


def add_doubt_remarks(text: str, doubts: Sequence[DoubtfulRange]) -> str:
    for at, remark in sorted(place_doubt_remarks(text, doubts), reverse=True):
        text = f"{text[:at]}{remark}{text[at:]}"
    return text


def place_doubt_remarks(text: str, doubts: Iterable[DoubtfulRange]) -> list[tuple[int, str]]:
    remark = " " + _("(not supported by the sources)")
    closings = ((doubt, _CLOSING.match(text, doubt.end)) for doubt in doubts)
    return [(closing.end() if closing else doubt.end, remark) for doubt, closing in closings]


def describe_reason(reason: str) -> str:
    return str(_REASONS.get(reason, _REASONS["words"]))
