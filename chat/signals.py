"""Signals of the chat, which does not import their receivers."""

from __future__ import annotations

from dataclasses import dataclass

from django.dispatch import Signal

# Sent after an answer was saved as COMPLETED, with `answer`.
answer_completed = Signal()
# Sent when the scores of an `answer` are shown. Receivers return a list of `PanelScore`.
scores_wanted = Signal()


@dataclass(frozen=True, slots=True)
class PanelScore:
    """A judge's score, in [0, 1]; None while ``pending`` or with an ``error``.

    Visitors never see ``error``.
    """

    name: str
    score: float | None = None
    error: str = ""
    reason: str = ""
    pending: bool = False
