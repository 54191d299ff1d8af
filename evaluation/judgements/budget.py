"""What judging with a language model may consume, and what it has."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from evaluation.judges.exceptions import JudgeBudgetSpent, JudgeUnavailable
from evaluation.models import Judgement, JudgeUsage
from evaluation.models.job import EvaluationJob
from retrieval.exceptions import LeaseLost

# A judgement that takes longer than this is given up, well before the broker hands its task to a second worker.
LONGEST_SECONDS = 15 * 60.0


def tokens_spent(day: date | None = None) -> int:
    """Tokens consumed on a day, by default today."""
    usage = JudgeUsage.objects.filter(day=day or timezone.localdate()).first()
    return usage.total_tokens if usage is not None else 0


def require_tokens() -> None:
    """Raises: BudgetSpent when the day's tokens for judging are consumed."""
    budget = settings.JUDGE_DAILY_BUDGET_TOKENS
    if budget and tokens_spent() >= budget:
        raise JudgeBudgetSpent(f"The day's budget of {budget:,} tokens for judging is spent.")


def spend(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """Counts the tokens on the day; returns the update that counts them on a row of the same fields."""
    consumed = {
        "prompt_tokens": F("prompt_tokens") + prompt_tokens,
        "completion_tokens": F("completion_tokens") + completion_tokens,
    }
    day = timezone.localdate()
    if not JudgeUsage.objects.filter(day=day).update(**consumed):
        JudgeUsage.objects.get_or_create(day=day)
        JudgeUsage.objects.filter(day=day).update(**consumed)
    return consumed


class JobMeter:
    """Implements ``Meter`` for a leased job: tokens count on the day at once, those of a killed worker too."""

    def __init__(self, job: EvaluationJob, longest_seconds: float = LONGEST_SECONDS) -> None:
        self._job = job
        self._longest_seconds = longest_seconds
        self._deadline = time.monotonic() + longest_seconds

    def check(self) -> None:
        if not self._job.held().exists():
            raise LeaseLost(f"{self._job.job_name} is no longer leased to this process.")
        if time.monotonic() > self._deadline:
            raise JudgeUnavailable(f"The judge was not done within {self._longest_seconds / 60:g} minutes.")
        require_tokens()

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        consumed = spend(prompt_tokens, completion_tokens)
        if isinstance(self._job, Judgement):
            self._job.write(**consumed)
