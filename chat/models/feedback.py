from __future__ import annotations

from typing import Any

from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from chat.models.answer import Answer
from retrieval.models.webhook import Webhook, announce


class Feedback(models.Model):
    """What the asker thinks of an answer; the last word counts."""

    class Reason(models.TextChoices):
        """What is wrong with an answer that did not help."""

        WRONG = "wrong", _("It is wrong")
        INCOMPLETE = "incomplete", _("Something is missing")
        SOURCES = "sources", _("The sources do not say that")
        OUTDATED = "outdated", _("The documents are out of date")
        UNANSWERED = "unanswered", _("It does not answer the question")
        OTHER = "other", _("Something else")

    answer = models.OneToOneField(Answer, models.CASCADE, related_name="feedback", verbose_name=_("answer"))
    helpful = models.BooleanField(_("helpful"))
    reason = models.CharField(_("reason"), max_length=12, choices=Reason, blank=True)
    comment = models.TextField(_("comment"), blank=True)
    created_at = models.DateTimeField(_("given"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("feedback")
        verbose_name_plural = _("feedback")

    def __str__(self) -> str:
        return "+" if self.helpful else "-"

    def save(self, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic():
            super().save(*args, **kwargs)
            if not self.helpful:
                said = {"reason": self.reason, "comment": self.comment}
                asked = {"answer": str(self.answer_id), "question": self.answer.question}
                announce(Webhook.Event.ANSWER_DISLIKED, {**asked, **said})
