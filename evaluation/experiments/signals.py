"""Records each finished answer of an experiment, and has visitors of the running one get their arm's profile."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from chat.models import Answer
from chat.signals import answer_completed
from evaluation.experiments import exposures
from evaluation.experiments.choice import choose
from retrieval.search.profiles import register_chooser

register_chooser(choose)


@receiver(answer_completed, dispatch_uid="evaluation.expose")
def record_exposure(answer: Answer, **_: Any) -> None:
    exposures.record(answer)
