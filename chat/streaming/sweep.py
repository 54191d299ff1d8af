"""Answers that no process writes any more are closed, and the events of old ones are deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.dispatch import receiver
from django.utils import timezone

from chat.models import Answer, StreamedEvent
from chat.streaming.saving import interrupted_message, stopped_message
from retrieval.jobs.sweep import sweeping

CLOSED_AFTER = timedelta(minutes=1)
NEVER_BEGUN_AFTER = timedelta(minutes=10)
EVENTS_KEPT = timedelta(days=1)


@receiver(sweeping, dispatch_uid="chat.close_interrupted")
def _close_interrupted(**_: Any) -> None:
    close_interrupted()


def close_interrupted() -> int:
    """Mark answers that no process is writing any more as failed, and delete the events of old ones."""
    now = timezone.now()
    is_interrupted = Q(lease__isnull=False, heartbeat_at__lt=Now() - CLOSED_AFTER)
    is_never_begun = Q(status=Answer.Status.PENDING, lease=None, created_at__lt=now - NEVER_BEGUN_AFTER)
    unfinished = Answer.objects.filter(status__in=(Answer.Status.PENDING, Answer.Status.GENERATING))
    closed = unfinished.filter(is_interrupted | is_never_begun).update(
        status=Answer.Status.FAILED, lease=None, error=interrupted_message(), completed_at=now
    )
    _save_stopped(Answer.objects.filter(is_interrupted, status=Answer.Status.STOPPED), now)
    StreamedEvent.objects.filter(answer__completed_at__lt=now - EVENTS_KEPT).delete()
    return closed


def _save_stopped(interrupted: QuerySet[Answer], now: datetime) -> None:
    """Save what had been written of answers that were stopped and whose process died before it could save them."""
    for answer in interrupted:
        tokens = answer.events.filter(attempt=answer.attempts, name="token")
        text = "".join(event.payload["text"] for event in tokens)
        interrupted.filter(pk=answer.pk, lease=answer.lease).update(
            lease=None, text=text, notice=stopped_message(), completed_at=now
        )
