"""The sentences of an answer that its sources do not support, and why, in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from chat.answering.citations import MARKER

_CLOSING = re.compile(rf"(?:[ \t]*{MARKER.pattern})*[.!?…]?(?:[ \t]*{MARKER.pattern})*")


@dataclass(frozen=True, slots=True)
class Doubt:
    """``text[start:end]`` of the answer is not supported; ``reason`` says why, in sentences."""

    start: int
    end: int
    reason: str


def doubts(statements: Iterable[Mapping[str, Any]]) -> tuple[Doubt, ...]:
    """The statements that were checked and not found in the sources, in the order of the text."""
    doubted = [
        Doubt(statement["start"], statement["end"], _in_words(statement["reasons"], statement["best"]))
        for statement in statements
        if statement["supported"] is False
    ]
    return tuple(sorted(doubted, key=lambda doubt: doubt.start))


def count_checked(statements: Iterable[Mapping[str, Any]]) -> int:
    """How many statements could be held against the sources."""
    return sum(statement["supported"] is not None for statement in statements)


def add_doubt_remarks(text: str, doubts: Sequence[Doubt]) -> str:
    """The text with a remark behind each sentence in doubt, for where marks cannot be seen."""
    remark = _("(not supported by the sources)")
    for doubt in sorted(doubts, key=lambda doubt: doubt.end, reverse=True):
        closing = _CLOSING.match(text, doubt.end)
        at = closing.end() if closing else doubt.end
        text = f"{text[:at]} {remark}{text[at:]}"
    return text


def _in_words(reasons: Iterable[str], best: Mapping[str, Any] | None) -> str:
    sentences = {
        "number": _("A number in it is not in the source."),
        "name": _("A name in it is not in the source."),
        "negation": _("The source seems to say the opposite."),
        "words": _("The source does not say this in these words."),
        "uncited": _("It names no source."),
        "elsewhere": _("Source %(number)d says it, not the one that is named.") % {"number": best["marker"]}
        if best
        else _("Another source says it, not the one that is named."),
    }
    explanations = [sentences[reason] for reason in reasons if reason in sentences]
    return " ".join(explanations or [sentences["words"]])
