from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from evaluation.models.job import Job, running_is_leased


class Judgement(Job):
    """One judge's work on one answer, which is a job (see `Job`)."""

    class Judge(models.TextChoices):
        OFFLINE = "offline", _("rules")
        MODEL = "model", _("language model")

    class Status(models.TextChoices):
        QUEUED = "queued", _("waiting")
        RUNNING = "running", _("being judged")
        DONE = "done", _("judged")
        FAILED = "failed", _("failed")
        SKIPPED = "skipped", _("not judged")

    TASK = "evaluation.tasks.judge_answer"

    answer = models.ForeignKey(Answer, models.CASCADE, related_name="judgements", verbose_name=_("answer"))
    judge = models.CharField(_("judge"), max_length=10, choices=Judge)
    judge_name = models.CharField(_("judged by"), max_length=200, blank=True)
    reference = models.TextField(
        _("expected answer"), blank=True, help_text=_("Where there is one, the passages are judged against it too.")
    )
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.QUEUED)
    prompt_tokens = models.PositiveIntegerField(_("tokens read"), default=0)
    completion_tokens = models.PositiveIntegerField(_("tokens written"), default=0)

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("judgement")
        verbose_name_plural = _("judgements")
        constraints = [
            models.UniqueConstraint(fields=["answer", "judge"], name="one_judgement_per_judge"),
            running_is_leased("running_judgement_is_leased"),
        ]
        indexes = [
            models.Index(fields=["status", "judge", "-created_at"], name="judgement_by_status"),
            # What the sweeper looks at: a handful of rows among all that were ever judged.
            models.Index(
                fields=["retry_at"], name="judgement_unfinished", condition=Q(status__in=["queued", "running"])
            ),
        ]

    @classmethod
    def most_attempts(cls) -> int:
        return int(settings.JUDGE_ATTEMPTS)

    def __str__(self) -> str:
        return f"{self.get_judge_display()}: {self.get_status_display()}"
