from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Greatest, Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.encryption import SecretHolder, parse_url_origin
from core.job_queue import enqueue_on_commit
from core.jobs import Job, compute_retry_pause

PAUSED_FROM_FAILURES = 3


class Webhook(SecretHolder):
    """An address to which the site sends the chosen ``events``. The encrypted ``secret`` signs the messages."""

    SECRET_PURPOSE = "retrieval.webhooks"  # noqa: S105 (the name of a purpose)

    class Event(models.TextChoices):
        ANSWER_DISLIKED = "answer.disliked", _("A reader found an answer unhelpful")
        GAP_FOUND = "question.unanswered", _("The documents did not answer a question")
        DOCUMENT_FAILED = "document.failed", _("A document could not be read")
        APPROVED_FLAGGED = "approved_answer.flagged", _("An approved answer was flagged")

    address = models.URLField(_("address"), max_length=1000)
    secret = models.TextField(_("secret"), editable=False)
    events = ArrayField(models.CharField(max_length=40, choices=Event), verbose_name=_("events"))
    is_active = models.BooleanField(_("active"), default=True)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0, db_default=0, editable=False)
    paused_until = models.DateTimeField(_("paused until"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("added"), auto_now_add=True)

    class Meta:
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")

    def __str__(self) -> str:
        return self.address

    @property
    def secret_destination(self) -> object:
        return parse_url_origin(self.address)

    def record_delivery(self, *, has_failed: bool) -> None:
        """Count failed deliveries in a row. After several, the webhook pauses, longer each time."""
        waiting = self.deliveries.filter(status=WebhookDelivery.WAITING, lease=None)
        self.failures = self.failures + 1 if has_failed else 0
        if self.failures >= PAUSED_FROM_FAILURES:
            self.paused_until = timezone.now() + compute_retry_pause(self.failures)
            waiting.update(retry_at=Greatest("retry_at", self.paused_until), enqueued_at=None)
        elif not has_failed and self.paused_until:
            waiting.filter(retry_at=self.paused_until).update(retry_at=Now())
            self.paused_until = None
        self.save(update_fields=["failures", "paused_until"])


class WebhookDelivery(Job):
    class Status(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("being sent")
        DONE = "done", _("delivered")
        FAILED = "failed", _("failed")

    TASK = "retrieval.tasks.deliver_webhook"
    WAITING, RUNNING, FAILED = Status.WAITING, Status.RUNNING, Status.FAILED
    # The last attempt is two hours after the first.
    MOST_ATTEMPTS = 8

    webhook = models.ForeignKey(Webhook, models.CASCADE, related_name="deliveries", verbose_name=_("webhook"))
    event = models.CharField(_("event"), max_length=40)
    payload = models.JSONField(_("payload"))
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.WAITING)
    response_status = models.PositiveSmallIntegerField(_("response"), null=True, blank=True)
    created_at = models.DateTimeField(_("happened"), auto_now_add=True)
    finished_at = models.DateTimeField(_("ended"), null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("webhook delivery")
        verbose_name_plural = _("webhook deliveries")

    def __str__(self) -> str:
        return f"{self.event} #{self.pk}"

    @classmethod
    def select_next_jobs(cls) -> QuerySet[Self]:
        """Return for each webhook the first delivery that is due; none while the webhook is sending one."""
        sending = cls._default_manager.filter(webhook=OuterRef("webhook"), status=cls.RUNNING)
        due = cls.select_startable_jobs().exclude(Exists(sending)).order_by("webhook", "pk").distinct("webhook")
        return cls.select_startable_jobs().filter(pk__in=due.values("pk"))

    def end(self, status: str, error: str = "", **values: Any) -> bool:
        return super().end(status, error, finished_at=timezone.now(), **values)


def announce_event(event: str, payload: Mapping[str, Any]) -> int:
    """Queue the event for every active webhook that wants it, and return their number.

    Call it in the transaction of the change that causes the event.
    """
    hooks = Webhook.objects.filter(is_active=True, events__contains=[event])
    rows = [
        WebhookDelivery(webhook=hook, event=event, payload=dict(payload), retry_at=hook.paused_until) for hook in hooks
    ]
    WebhookDelivery.objects.bulk_create(rows)
    # A periodic task sends the deliveries of paused webhooks later.
    enqueue_on_commit(WebhookDelivery, [row.pk for row in rows if row.retry_at is None])
    return len(rows)
