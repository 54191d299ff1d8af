from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models.answer import Answer
from core.jobs import Job


class FollowedAnswer(models.Model):
    """An answer whose reader gets a mail when a passage that it cites changes.

    ``checked`` is a hash of the cited documents' versions at the last check. ``told`` are the keys of changes that the
    reader has seen.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="followed_answers")
    answer = models.ForeignKey(Answer, models.CASCADE, related_name="followers")
    # The address of the page is stored, because mails are sent without a request.
    address = models.URLField(max_length=500)
    language = models.CharField(max_length=12)
    checked = models.CharField(max_length=32, blank=True)
    told: models.JSONField[list[str]] = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [models.UniqueConstraint(fields=["user", "answer"], name="followed_once")]

    def __str__(self) -> str:
        return f"{self.answer_id} followed by {self.user_id}"


class ChangeNotice(Job):
    """A mail to send about a followed answer. ``changes`` are the keys of the changes that the mail describes."""

    class Status(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("being sent")
        DONE = "done", _("delivered")
        FAILED = "failed", _("failed")

    TASK = "chat.tasks.send_change_notice"
    WAITING, RUNNING, FAILED = Status.WAITING, Status.RUNNING, Status.FAILED
    MOST_ATTEMPTS = 8

    followed = models.ForeignKey(FollowedAnswer, models.CASCADE, related_name="notices")
    changes: models.JSONField[list[str]] = models.JSONField(default=list)
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.WAITING)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("notice of a change")
        verbose_name_plural = _("notices of changes")

    def __str__(self) -> str:
        return f"notice #{self.pk}"

    def end(self, status: str, error: str = "", **values: Any) -> bool:
        return super().end(status, error, finished_at=timezone.now(), **values)
