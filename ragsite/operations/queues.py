"""Work that waits for a worker or a web process, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, QuerySet
from django.utils import timezone

from chat.models import Answer
from evaluation.models import Judgement
from retrieval.models import Document

# Waiting for longer is a sign that something is wrong, or that there are too few processes.
LATE_AFTER = {
    "documents": timedelta(minutes=10),
    "judgements": timedelta(hours=1),
    "answers": timedelta(minutes=1),
}


@dataclass(frozen=True, slots=True)
class Queue:
    """``oldest_seconds`` is how long the one waits that could have been begun first; 0 when nothing waits."""

    name: str
    length: int
    oldest_seconds: float

    @property
    def is_late(self) -> bool:
        return self.oldest_seconds > LATE_AFTER[self.name].total_seconds()


def queues() -> list[Queue]:
    """What could be begun now: documents to read, judgements to make, answers to write."""
    now = timezone.now()
    pending = Document.objects.filter(status=Document.Status.PENDING)
    # The schedule plans untried documents anew while they wait in the queue: they have waited since they came.
    untried = pending.filter(attempts=0)
    due_again = pending.filter(attempts__gt=0, retry_at__lte=now)
    judged = Judgement.objects.filter(status=Judgement.Status.QUEUED)
    return [
        _queue("documents", now, (untried, "updated_at"), (due_again, "retry_at")),
        _queue(
            "judgements",
            now,
            (judged.filter(retry_at=None), "created_at"),
            (judged.filter(retry_at__lte=now), "retry_at"),
        ),
        _queue("answers", now, (Answer.objects.filter(status=Answer.Status.PENDING), "created_at")),
    ]


def _queue(
    name: str, now: datetime, *parts: tuple[QuerySet[Document] | QuerySet[Judgement] | QuerySet[Answer], str]
) -> Queue:
    length, since = 0, now
    for rows, waits_since in parts:
        counted = rows.order_by().aggregate(length=Count("pk"), since=Min(waits_since))
        length += counted["length"]
        since = min(since, counted["since"] or now)
    return Queue(name, length, (now - since).total_seconds())
