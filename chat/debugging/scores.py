"""Scores that other apps give a completed answer. The chat asks for them and knows no judge."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.models import Answer
from chat.signals import scores_wanted


@dataclass(frozen=True, slots=True)
class PanelScore:
    """A judge's score of an answer. ``score`` lies in [0, 1]; None while ``pending``, and with an ``error``.

    ``error`` is for engineers, never for visitors; ``reason`` is for everybody who may see the panel.
    """

    name: str
    score: float | None = None
    error: str = ""
    reason: str = ""
    pending: bool = False


def scores_of(answer: Answer) -> tuple[PanelScore, ...]:
    """The scores from all receivers of `scores_wanted`. A receiver that fails is logged and gets a row that says so;
    the other scores are still shown.
    """
    scores: list[PanelScore] = []
    for _receiver, found in scores_wanted.send_robust(Answer, answer=answer):
        if isinstance(found, Exception):
            found = [PanelScore(_("scores"), error=f"{type(found).__name__}: {found}")]
        scores += found
    return tuple(scores)
