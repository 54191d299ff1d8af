from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from core.jobs import LeasedModel, build_retry_due_condition


class SlackQuestion(LeasedModel):
    """A question from Slack, and the answer to it.

    - ``message``: channel and time of the message, unique because Slack may send it twice.
    - ``thread``: the time of the thread's first message.
    - ``reply``: the time of the site's reply, whose text is later replaced by the answer.
    - ``text``: the question; deleted after it is answered, refused or failed.
    """

    class Status(models.TextChoices):
        WAITING = "waiting", _("waiting")
        ANSWERED = "answered", _("answered")
        REFUSED = "refused", _("refused")
        FAILED = "failed", _("failed")

    MOST_ATTEMPTS = 4
    # Slack repeats a message for at most an hour.
    KEPT_FOR = timedelta(days=1)

    message = models.CharField(max_length=80, unique=True)
    channel = models.CharField(max_length=40)
    thread = models.CharField(max_length=40)
    person = models.CharField(max_length=40)
    is_direct = models.BooleanField()
    text = models.TextField(blank=True)
    reply = models.CharField(max_length=40, blank=True)
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.WAITING)
    answer = models.OneToOneField(Answer, models.CASCADE, null=True, related_name="slack_question")
    retry_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("question from Slack")
        verbose_name_plural = _("questions from Slack")
        indexes = [
            models.Index(fields=["channel", "thread"], name="slack_question_by_thread"),
            models.Index(fields=["id"], condition=Q(status="waiting"), name="slack_question_waiting"),
        ]

    def __str__(self) -> str:
        return self.message

    @classmethod
    def select_waiting_questions(cls) -> QuerySet[SlackQuestion]:
        is_free = Q(lease=None) | cls.build_stale_lease_condition()
        return cls.objects.filter(build_retry_due_condition(), is_free, status=cls.Status.WAITING).order_by("pk")

    @classmethod
    def delete_old_questions(cls) -> None:
        old = cls.objects.filter(answer=None, created_at__lt=Now() - cls.KEPT_FOR)
        old.exclude(status=cls.Status.WAITING).delete()
