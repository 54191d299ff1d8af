from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class JudgeUsage(models.Model):
    """The tokens that judging with a language model consumed on one day, in the site's time zone.

    A row of its own and not a sum over judgements: judging again, or deleting an answer, does not give tokens back.
    """

    day = models.DateField(_("day"), unique=True)
    prompt_tokens = models.PositiveBigIntegerField(_("tokens read"), default=0)
    completion_tokens = models.PositiveBigIntegerField(_("tokens written"), default=0)

    class Meta:
        ordering = ["-day"]
        verbose_name = _("judge's usage")
        verbose_name_plural = _("judge's usage")

    def __str__(self) -> str:
        return f"{self.day}: {self.total_tokens}"

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
