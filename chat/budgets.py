"""How many questions somebody may still ask today. Visitors have no budget: rates limit them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.exceptions import BudgetSpent
from chat.models import QuestionBudget, QuestionCount

# What is left is told from here on: the last questions, and the last fifth.
TOLD_FROM = 3
TOLD_SHARE = 5
_COUNTS_KEPT = timedelta(days=7)

_SPEND = """
    INSERT INTO chat_questioncount AS counted (user_id, day, number) VALUES (%s, %s, 1)
    ON CONFLICT (user_id, day) DO UPDATE SET number = counted.number + 1 WHERE counted.number < %s
    RETURNING number
"""


@dataclass(frozen=True, slots=True)
class Budget:
    limit: int
    asked: int

    @property
    def left(self) -> int:
        return max(0, self.limit - self.asked)

    @property
    def is_short(self) -> bool:
        return self.left <= max(TOLD_FROM, self.limit // TOLD_SHARE)


def budget_of(user: Any) -> Budget | None:
    """The user's budget of today; None for those who have none: visitors, and users without any limit."""
    limit = _limit_of(user)
    if limit is None:
        return None
    counted = QuestionCount.objects.filter(user_id=user.pk, day=timezone.localdate()).first()
    return Budget(limit, counted.number if counted else 0)


def spend(user: Any) -> None:
    """Count a question, in the transaction that saves it. Raises: BudgetSpent."""
    limit = _limit_of(user)
    if limit is None:
        return
    with connection.cursor() as cursor:
        counted = None
        if limit > 0:
            cursor.execute(_SPEND, [user.pk, timezone.localdate(), limit])
            counted = cursor.fetchone()
    if counted is None:
        message = _("You have asked all the questions that you may ask today (%(limit)d). Tomorrow you can ask again.")
        raise BudgetSpent(message % {"limit": limit}, _seconds_to_tomorrow())


def forget_old_counts() -> None:
    QuestionCount.objects.filter(day__lt=timezone.localdate() - _COUNTS_KEPT).delete()


def _limit_of(user: Any) -> int | None:
    if not getattr(user, "is_authenticated", False):
        return None
    own = QuestionBudget.objects.filter(user=user).values_list("questions_a_day", flat=True).first()
    if own is not None:
        return own
    of_groups: int | None = QuestionBudget.objects.filter(group__in=user.groups.all()).aggregate(
        most=Max("questions_a_day")
    )["most"]
    return of_groups if of_groups is not None else settings.QUESTIONS_A_DAY or None


def _seconds_to_tomorrow() -> int:
    tomorrow = timezone.make_aware(datetime.combine(timezone.localdate() + timedelta(days=1), time.min))
    return max(1, math.ceil((tomorrow - timezone.now()).total_seconds()))
