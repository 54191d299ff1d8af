"""The way of a row that is its own job: told of, claimed by one worker, beaten for, postponed or ended, swept.

No broker can lose or double such a job. What it forgets, :func:`sweep` sends again; a worker that dies stops beating
and loses its claim, and whoever lost the claim can write no more.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from django.db.models import F, Model, Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from evaluation.models.job import Job
from retrieval.jobs.heartbeat import heartbeat

logger = logging.getLogger(__name__)

HEARTBEAT_LOST_AFTER = timedelta(seconds=30)
# How long a worker that was told may take to begin, before another one is told.
BEGUN_WITHIN = timedelta(minutes=5)
# A row younger than this is just being sent by the process that made it.
SENT_WITHIN = timedelta(seconds=10)
MOST_AT_ONCE = 500

J = TypeVar("J", bound=Job)


class Task(Protocol):
    """A Celery task that does the job whose id it is given."""

    def delay(self, job_id: int, /) -> Any: ...


def claim(job_id: int, jobs: QuerySet[J], **values: Any) -> J | None:
    """The job among ``jobs``, now this worker's; None when it does not wait, or not yet."""
    now = timezone.now()
    due = Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
    claimed = jobs.filter(due, pk=job_id, status=Job.QUEUED).update(
        status=Job.RUNNING, claim=uuid.uuid4(), heartbeat_at=now, attempts=F("attempts") + 1, **values
    )
    return jobs.get(pk=job_id) if claimed else None


def held(job: J) -> QuerySet[J]:
    """The row, as long as this worker's claim on it holds; else nothing."""
    return type(job)._default_manager.filter(pk=job.pk, claim=job.claim)


def beating(job: Job) -> AbstractContextManager[None]:
    """Tells that the holder of the claim lives, until the block ends."""
    return heartbeat(held(job), _name(type(job), job.pk))


def postpone(job: Job, reason: str, pause: timedelta, *, most_attempts: int) -> None:
    """Plan another attempt in a while; after the last one leave the job, FAILED, to the admin."""
    if job.attempts >= most_attempts:
        logger.warning("%s failed: %s", _name(type(job), job.pk).capitalize(), reason)
        end(job, Job.FAILED, error=reason)
        return
    held(job).update(
        status=Job.QUEUED, error=reason, claim=None, next_attempt_at=timezone.now() + pause, enqueued_at=None
    )


def end(job: Job, status: str, *, error: str = "", **values: Any) -> None:
    held(job).update(**values, status=status, error=error, claim=None, next_attempt_at=None, finished_at=timezone.now())


def enqueue(model: type[Job], ids: Iterable[int], task: Task) -> int:
    """Tell a worker of each; when the broker does not answer, the next sweep will. Returns how many were told."""
    sent = []
    now = timezone.now()
    for pk in ids:
        try:
            task.delay(pk)
        except OperationalError as error:
            logger.warning("The broker did not take %s (%s); the schedule will.", _name(model, pk), error)
            break
        sent.append(pk)
    # Not what was told, tried and postponed already: nobody has been told of its next attempt.
    due = Q(next_attempt_at=None) | Q(next_attempt_at__lte=now)
    model._default_manager.filter(due, pk__in=sent, status=Job.QUEUED).update(enqueued_at=now)
    return len(sent)


def sweep(model: type[Job], task: Task, *, most_attempts: int) -> int:
    """Tell workers of every job that waits without one: interrupted, due again, or never picked up.

    Returns how many they were told of.
    """
    now = timezone.now()
    jobs = model._default_manager
    lost = jobs.filter(status=Job.RUNNING, heartbeat_at__lt=now - HEARTBEAT_LOST_AFTER)
    # What ends the worker itself (by memory, say) would do so for ever.
    lost.filter(attempts__gte=most_attempts).update(
        status=Job.FAILED,
        claim=None,
        error=f"It was interrupted {most_attempts} times: the worker may run out of memory.",
        finished_at=now,
    )
    lost.update(status=Job.QUEUED, claim=None, next_attempt_at=None, enqueued_at=None)
    waiting = jobs.filter(
        Q(enqueued_at=None, created_at__lt=now - SENT_WITHIN) | Q(enqueued_at__lt=now - BEGUN_WITHIN),
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
        status=Job.QUEUED,
    )
    return enqueue(model, waiting.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE], task)


def _name(model: type[Model], pk: int) -> str:
    return f"{model._meta.verbose_name_raw} {pk}"
