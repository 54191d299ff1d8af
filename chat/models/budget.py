from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class QuestionBudget(models.Model):
    """How many questions a person, or each member of a group, may ask in a day; in place of QUESTIONS_A_DAY."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("user")
    )
    group = models.OneToOneField(
        Group, models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("group")
    )
    questions_a_day = models.PositiveIntegerField(
        _("questions a day"),
        help_text=_("A person's own budget counts first, then the largest of the groups'."),
    )

    class Meta:
        ordering = ["pk"]
        verbose_name = _("budget of questions")
        verbose_name_plural = _("budgets of questions")
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None, group__isnull=False) | Q(user__isnull=False, group=None),
                name="budget_of_a_user_or_a_group",
                violation_error_message=_("Choose a user or a group."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group}: {self.questions_a_day}"


class QuestionCount(models.Model):
    """How many questions a user asked on a day. Counted apart from the answers, which their asker may delete."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    day = models.DateField()
    number = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "day"], name="one_question_count_a_day")]

    def __str__(self) -> str:
        return f"{self.day}: {self.number}"
