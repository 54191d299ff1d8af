"""Has every finished answer judged."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from chat.models import Answer
from chat.signals import answer_completed
from evaluation.judgements import judgement_queue
from retrieval.resilience.commits import not_waiting


@receiver(answer_completed, dispatch_uid="evaluation.judge")
def judge_completed_answer(answer: Answer, **_: Any) -> None:
    # What a crash of the database takes back is found by `judgement_queue.request_forgotten`.
    with not_waiting():
        judgement_queue.request(answer)
