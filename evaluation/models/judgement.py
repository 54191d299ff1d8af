from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chat.models import Answer


class Judgement(models.Model):
    """One judge's work on one answer, and its job: QUEUED until a worker claims it, RUNNING while that worker beats.

    ``claim`` is the token of the one worker that may write, ``next_attempt_at`` the time before which nobody begins
    (empty: at once), ``enqueued_at`` when a worker was last told (empty: not yet). While an attempt is still to come,
    ``error`` says why the last one failed.
    """

    class Judge(models.TextChoices):
        OFFLINE = "offline", _("rules")
        MODEL = "model", _("language model")

    class Status(models.TextChoices):
        QUEUED = "queued", _("waiting")
        RUNNING = "running", _("being judged")
        DONE = "done", _("judged")
        FAILED = "failed", _("failed")
        SKIPPED = "skipped", _("not judged")

    answer = models.ForeignKey(Answer, models.CASCADE, related_name="judgements", verbose_name=_("answer"))
    judge = models.CharField(_("judge"), max_length=10, choices=Judge)
    judge_name = models.CharField(_("judged by"), max_length=200, blank=True)
    reference = models.TextField(
        _("expected answer"), blank=True, help_text=_("Where there is one, the passages are judged against it too.")
    )
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.QUEUED)
    error = models.TextField(_("error"), blank=True)
    prompt_tokens = models.PositiveIntegerField(_("tokens read"), default=0)
    completion_tokens = models.PositiveIntegerField(_("tokens written"), default=0)

    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    claim = models.UUIDField(null=True, editable=False)
    heartbeat_at = models.DateTimeField(null=True, editable=False)
    next_attempt_at = models.DateTimeField(_("next attempt"), null=True, blank=True)
    enqueued_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(_("asked for"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("judgement")
        verbose_name_plural = _("judgements")
        constraints = [
            models.UniqueConstraint(fields=["answer", "judge"], name="one_judgement_per_judge"),
            models.CheckConstraint(
                condition=Q(status="running", claim__isnull=False) | ~Q(status="running") & Q(claim=None),
                name="running_judgement_is_claimed",
            ),
        ]
        indexes = [
            models.Index(fields=["status", "judge", "-created_at"], name="judgement_by_status"),
            # What the sweeper looks at: a handful of rows among all that were ever judged.
            models.Index(
                fields=["next_attempt_at"], name="judgement_unfinished", condition=Q(status__in=["queued", "running"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_judge_display()}: {self.get_status_display()}"

    @property
    def is_finished(self) -> bool:
        return self.status not in (self.Status.QUEUED, self.Status.RUNNING)
