"""Signals of the chat. Other apps receive them, because the chat may not import those apps."""

from __future__ import annotations

from dataclasses import dataclass

from django.dispatch import Signal

# Sent after an answer was saved as COMPLETED, with `answer`.
answer_completed = Signal()
# Sent when a page shows the judges' scores of an `answer`. Receivers return a list of `DisplayedScore`.
scores_wanted = Signal()


@dataclass(frozen=True, slots=True)
class DisplayedScore:
    """A judge's score of an answer, 0 to 1. It is None while it is ``pending`` or after an ``error``.

    ``error`` is shown only to staff.
    """

    name: str
    score: float | None = None
    error: str = ""
    reason: str = ""
    pending: bool = False
