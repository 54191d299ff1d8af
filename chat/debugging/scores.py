"""A place for the scores that others give an answer after it is complete. The chat asks for them and knows no judge.

An app registers a provider when it is ready::

    class EvaluationConfig(AppConfig):
        def ready(self) -> None:
            scores.register(scores_of_answer)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.models import Answer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PanelScore:
    """What a judge said of an answer. ``score`` lies in [0, 1]; None while ``pending``, and with an ``error``.

    ``error`` is for engineers, never for visitors; ``reason`` is for everybody who may see the panel.
    """

    name: str
    score: float | None = None
    error: str = ""
    reason: str = ""
    pending: bool = False


ScoreProvider = Callable[[Answer], Iterable[PanelScore]]

_providers: list[ScoreProvider] = []


def register(provider: ScoreProvider) -> None:
    """Have the panel ask ``provider`` for scores; once, however often it is registered."""
    if provider not in _providers:
        _providers.append(provider)


def scores_of(answer: Answer) -> tuple[PanelScore, ...]:
    """The scores of all providers, in the order of their registration; empty without providers.

    A provider that fails is announced in the log and by a row of its own; the others are shown all the same.
    """
    scores: list[PanelScore] = []
    for provider in tuple(_providers):
        try:
            scores += provider(answer)
        except Exception as error:
            logger.exception("Scores of answer %s could not be read.", answer.pk)
            scores.append(PanelScore(_("scores"), error=f"{type(error).__name__}: {error}"))
    return tuple(scores)
