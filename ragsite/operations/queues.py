from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celery import current_app
from django.db.models import Case, Count, F, Min, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from core.job_queue import count_queued
from core.jobs import Job, build_retry_due_condition
from core.readiness import DATABASE, CheckResult, Health
from evaluation.models import EvaluationRun, Judgement
from retrieval.models import Document, Draft, SourceRun, WebhookDelivery

# The scheduler sends waiting work every 15 seconds. If work waits longer than this, no worker seems to be running.
WAITS_FOR_NOBODY_AFTER = timedelta(seconds=90)
# A worker that reads a document for longer than this without progress is stuck.
STUCK_AFTER = timedelta(minutes=3)
LATE_AFTER = {
    "documents": timedelta(minutes=10),
    "maintenance": timedelta(minutes=5),
    "judgements": timedelta(hours=1),
    "deliveries": timedelta(hours=1),
    "answers": timedelta(minutes=1),
}
QUEUE_LABELS = {
    "documents": _("Documents and sources"),
    "maintenance": _("Maintenance"),
    "judgements": _("Automatic ratings and evaluation runs"),
    "deliveries": _("Webhook deliveries"),
    "answers": _("Answers"),
}
# Tasks of the queue `maintenance` have no rows in the database, so it is not listed.
_JOBS: dict[str, tuple[type[Job], ...]] = {
    "documents": (Document, SourceRun, Draft),
    "judgements": (Judgement, EvaluationRun),
    "deliveries": (WebhookDelivery,),
}


@dataclass(frozen=True, slots=True)
class Queue:
    """The length of a queue of jobs. ``oldest_seconds`` is how long its oldest job has been due, or 0."""

    name: str
    length: int
    oldest_seconds: float

    @property
    def label(self) -> str:
        return str(QUEUE_LABELS[self.name])

    @property
    def is_late(self) -> bool:
        # The scheduler sends eight maintenance tasks a minute, so a few waiting tasks are normal.
        is_backlog = self.name != "maintenance" or self.length > 20
        return is_backlog and self.oldest_seconds > LATE_AFTER[self.name].total_seconds()


def count_queued_work() -> list[Queue]:
    """Return the length of each queue."""
    counts = [_count_answers(), *(_count_jobs(name, model) for name, models in _JOBS.items() for model in models)]
    lengths, oldest, now = Counter[str](), dict[str, float](), timezone.now()
    for name, length, since in counts[0].union(*counts[1:], all=True):
        lengths[name] += length
        oldest[name] = max(oldest.get(name, 0.0), (now - (since or now)).total_seconds())
    if current_app.conf.broker_url.startswith("pgmq:"):
        lengths["maintenance"], oldest["maintenance"] = count_queued("maintenance")
    return [Queue(name, lengths[name], oldest.get(name, 0.0)) for name in LATE_AFTER]


def _count_answers() -> QuerySet[Any, Any]:
    return _count_waiting_rows("answers", Answer.objects.filter(status=Answer.Status.PENDING), F("created_at"))


def _count_jobs(name: str, model: type[Job]) -> QuerySet[Any, Any]:
    if model is not Document:
        return _count_waiting_rows(
            name, model.select_startable_jobs(), Coalesce("retry_at", "enqueued_at", "created_at")
        )
    # The scheduler changes the `retry_at` of a document that was never tried. So the waiting time of such a document is
    # measured from its last update.
    rows = Document.objects.filter(Q(attempts=0) | build_retry_due_condition(), status=Document.Status.PENDING)
    return _count_waiting_rows(name, rows, Case(When(attempts=0, then="updated_at"), default="retry_at"))


def _count_waiting_rows(name: str, rows: QuerySet[Any], since: Combinable) -> QuerySet[Any, Any]:
    named = rows.order_by().annotate(queue=Value(name)).values("queue")
    counted: QuerySet[Any, Any] = named.annotate(length=Count("pk"), since=Min(since))
    return counted.values_list("queue", "length", "since")


def _has_live_worker(queue: str) -> bool:
    alive = Q(heartbeat_at__gte=Now() - Job.SILENT_AFTER)
    return queue not in _JOBS or any(model._default_manager.filter(alive).exists() for model in _JOBS[queue])


@DATABASE.check("worker")
def check_worker() -> CheckResult:
    counts = count_documents_by_status()
    limit = WAITS_FOR_NOBODY_AFTER.total_seconds()
    idle = [
        line.name for line in count_queued_work() if line.oldest_seconds > limit and not _has_live_worker(line.name)
    ]
    if idle:
        detail = f"Nobody takes what waits in the queues: {', '.join(idle)}; start a worker for them."
        return CheckResult(Health.DEGRADED, detail, counts)
    busy = Document.objects.filter(status=Document.Status.PROCESSING, heartbeat_at__gte=Now() - Document.SILENT_AFTER)
    if stuck := busy.filter(updated_at__lt=Now() - STUCK_AFTER).count():
        minutes = STUCK_AFTER.total_seconds() / 60
        return CheckResult(
            Health.DEGRADED, f"Documents being read without progress for {minutes:g} minutes: {stuck}.", counts
        )
    return CheckResult(counts=counts)


@DATABASE.check("queue")
def check_queue() -> CheckResult:
    lines = count_queued_work()
    counts = {line.name: {"length": line.length, "oldest_seconds": round(line.oldest_seconds, 1)} for line in lines}
    late = "; ".join(
        f"{line.length} {line.name}, the oldest for {line.oldest_seconds / 60:.0f} min"
        for line in lines
        if line.is_late
    )
    return (
        CheckResult(Health.DEGRADED, f"Work waits for too long: {late}.", counts)
        if late
        else CheckResult(counts=counts)
    )


def count_documents_by_status() -> dict[str, int]:
    counted = dict(Document.objects.order_by().values_list("status").annotate(Count("pk")))
    return {status: counted.get(status, 0) for status in Document.Status.values}
