"""Has every finished answer judged."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from chat.models import Answer
from chat.signals import answer_completed
from evaluation.judgements import judgement_queue


@receiver(answer_completed, dispatch_uid="evaluation.judge")
def judge_completed_answer(answer: Answer, **_: Any) -> None:
    judgement_queue.request(answer)
