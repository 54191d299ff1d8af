from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chat.models.language_model import LanguageModel


class QuestionBudget(models.Model):
    """Daily limits for a user, or for each member of a group. Without a user and a group, they apply to every user."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("user")
    )
    group = models.OneToOneField(
        Group, models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("group")
    )
    questions_a_day = models.PositiveIntegerField(
        _("questions a day"),
        null=True,
        blank=True,
        help_text=_("A person's own budget counts first, then the largest of the person's groups, then everybody's."),
    )
    tokens_a_day = models.PositiveBigIntegerField(
        _("model tokens a day"),
        null=True,
        blank=True,
        help_text=_("Read and written by the language model. After that, answers are quoted from the documents."),
    )
    cost_a_day = models.DecimalField(
        _("model cost a day"),
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text=_("In the currency of the language models' prices."),
    )

    class Meta:
        ordering = ["pk"]
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None) | Q(group=None),
                name="budget_of_a_user_a_group_or_everybody",
                violation_error_message=_("Choose a user or a group, not both."),
            ),
            models.UniqueConstraint(
                fields=["user", "group"],
                name="one_budget_each",
                nulls_distinct=False,
                violation_error_message=_("There is such a budget already."),
            ),
        ]

    def __str__(self) -> str:
        return str(self.user or self.group or _("everybody"))

    def clean(self) -> None:
        has_price = settings.OPENAI_PRICE_PROMPT or settings.OPENAI_PRICE_COMPLETION
        priced = ~Q(price_prompt=0) | ~Q(price_completion=0)
        if self.cost_a_day is not None and not has_price and not LanguageModel.objects.filter(priced).exists():
            sentence = _("No cost is counted: no language model has a price.")
            raise ValidationError({"cost_a_day": sentence})


class QuestionCount(models.Model):
    """The number of questions, tokens and cost of a user on a day. It does not change when answers are deleted."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    day = models.DateField()
    number = models.PositiveIntegerField(default=0)
    tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=8, default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "day"], name="one_question_count_a_day")]

    def __str__(self) -> str:
        return f"{self.day}: {self.number}"
