"""Count the questions, tokens and cost of each user today.

Questions beyond their limit are rejected. Beyond the limit of tokens or cost, answers quote documents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.exceptions import BudgetSpent
from chat.models import QuestionBudget, QuestionCount
from core.api.callers import identify_caller
from core.user_types import AnyUser
from retrieval.api.throttling import FixedWindowThrottle

if TYPE_CHECKING:
    from chat.types import TokenUsage

TOLD_FROM = 3
TOLD_PERCENT = 80
_COUNTS_KEPT = timedelta(days=7)
_LIMITS = ("questions_a_day", "tokens_a_day", "cost_a_day")

_SPEND = """
    INSERT INTO chat_questioncount AS counted (user_id, day, number, tokens, cost) VALUES (%s, %s, 1, 0, 0)
    ON CONFLICT (user_id, day) DO UPDATE SET number = counted.number + 1 WHERE counted.number < %s
    RETURNING number
"""
_COUNT_USE = """
    INSERT INTO chat_questioncount AS counted (user_id, day, number, tokens, cost)
    SELECT id, %s, 0, %s, %s FROM auth_user WHERE id = %s
    ON CONFLICT (user_id, day) DO UPDATE SET
        tokens = counted.tokens + EXCLUDED.tokens, cost = counted.cost + EXCLUDED.cost
"""


@dataclass(frozen=True, slots=True)
class BudgetShare:
    limit: Decimal
    used: Decimal

    @property
    def percent(self) -> int:
        return int(min(Decimal(100), 100 * self.used / self.limit)) if self.limit else 100

    @property
    def is_nearly_used_up(self) -> bool:
        return self.percent >= TOLD_PERCENT

    @property
    def is_spent(self) -> bool:
        return self.percent == 100


@dataclass(frozen=True, slots=True)
class DailyBudget:
    """The three daily limits of a user: questions, tokens and cost. None means no limit."""

    questions: BudgetShare | None
    tokens: BudgetShare | None
    cost: BudgetShare | None

    @property
    def few_questions_left(self) -> int | None:
        if self.questions is None:
            return None
        left = int(max(Decimal(0), self.questions.limit - self.questions.used))
        return left if self.questions.is_nearly_used_up or left <= TOLD_FROM else None

    @property
    def highest_budget_share(self) -> BudgetShare | None:
        shares = [share for share in (self.tokens, self.cost) if share is not None]
        return max(shares, key=lambda share: share.percent, default=None)


def find_budget(user: AnyUser | None) -> DailyBudget | None:
    """Return the user's daily limits and how much of them is used; None if the user has no limits."""
    limits = _find_limits(user)
    if user is None or user.pk is None or limits == (None, None, None):
        return None
    counted = QuestionCount.objects.filter(user_id=user.pk, day=timezone.localdate()).first() or QuestionCount()
    used: tuple[int | Decimal, ...] = (counted.number, counted.tokens, counted.cost)
    questions, tokens, cost = (
        None if limit is None else BudgetShare(limit, Decimal(amount))
        for limit, amount in zip(limits, used, strict=True)
    )
    return DailyBudget(questions, tokens, cost)


def count_asked_question(user: AnyUser) -> None:
    """Count one question of the user. Call it in the transaction that saves the question. Raises: BudgetSpent."""
    limit = _find_limits(user)[0]
    if limit is None:
        return
    with connection.cursor() as cursor:
        counted = None
        if limit > 0:
            cursor.execute(_SPEND, [user.pk, timezone.localdate(), limit])
            counted = cursor.fetchone()
    if counted is None:
        message = _("You have asked all the questions that you may ask today (%(limit)d). Tomorrow you can ask again.")
        raise BudgetSpent(message % {"limit": limit}, _count_seconds_to_tomorrow())


def may_use_model(user: AnyUser | None) -> bool:
    """Return whether the user has tokens and money left for a language model today.

    The tokens and cost of answers in progress are not counted yet.
    """
    budget = find_budget(user)
    return budget is None or budget.highest_budget_share is None or not budget.highest_budget_share.is_spent


def count_token_use(user_pk: int, usage: TokenUsage) -> None:
    tokens = usage.prompt_tokens + usage.completion_tokens
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_USE, [timezone.localdate(), tokens, usage.cost or 0, user_pk])


def forget_old_counts() -> None:
    QuestionCount.objects.filter(day__lt=timezone.localdate() - _COUNTS_KEPT).delete()


def _find_limits(user: AnyUser | None) -> tuple[Decimal | None, ...]:
    if user is None or not user.is_authenticated:
        return (None, None, None)
    own = QuestionBudget.objects.filter(user=user).values(*_LIMITS).first() or {}
    of_groups = QuestionBudget.objects.filter(group__in=user.groups.all())
    largest = of_groups.aggregate(**{name: Max(name) for name in _LIMITS})
    of_everybody = QuestionBudget.objects.filter(user=None, group=None).values(*_LIMITS).first() or {}
    limits = ((own.get(name), largest[name], of_everybody.get(name)) for name in _LIMITS)
    return tuple(next((Decimal(str(limit)) for limit in each if limit is not None), None) for each in limits)


def _count_seconds_to_tomorrow() -> int:
    tomorrow = timezone.make_aware(datetime.combine(timezone.localdate() + timedelta(days=1), time.min))
    return max(1, math.ceil((tomorrow - timezone.now()).total_seconds()))


class QuestionThrottle(FixedWindowThrottle):
    """A rate limit for questions on pages. Questions to the API count towards the same limit."""

    scope = "ask"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return str(self.cache_format % {"scope": self.scope, "ident": identify_caller(request)})
