"""Send jobs to workers through the message broker. A periodic sweep sends lost tasks again."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from celery import current_app
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.dispatch import Signal
from kombu.exceptions import OperationalError

from core.database import commit_without_waiting
from core.jobs import Job, build_retry_due_condition

logger = logging.getLogger(__name__)


def enqueue(model: type[Job], ids: Iterable[int]) -> int:
    """Send a Celery task for each job, and return how many were sent. A periodic task sends refused ones later."""
    sent = 0
    for pk in ids:
        started = time.monotonic()
        try:
            send_job(model.TASK, pk)
        except OperationalError as error:
            logger.warning("The broker did not take %s %s (%s).", model._meta.verbose_name_raw, pk, error)
            break
        sent += 1
        # A fast worker may already have begun or postponed the job. Then the filter excludes the job, so that its new
        # times are kept.
        with commit_without_waiting():
            ago = timedelta(seconds=time.monotonic() - started)
            model._default_manager.filter(build_retry_due_condition(ago), pk=pk, lease=None).update(
                enqueued_at=Now() - ago
            )
    return sent


def enqueue_on_commit(model: type[Job], ids: Iterable[int]) -> None:
    """Send the jobs' tasks after the commit. Errors are only logged, because a periodic task sends the tasks again."""
    transaction.on_commit(lambda: enqueue(model, ids), robust=True)


def send_job(task: str, pk: int) -> None:
    current_app.send_task(task, (pk,))


def count_queued(queue: str) -> tuple[int, float]:
    """Return how many tasks wait in the queue, and for how many seconds the oldest one has waited.

    The seconds are 0 if the broker does not report them. Raises: DatabaseError and the broker's errors.
    """
    if not current_app.conf.broker_url.startswith("pgmq:"):
        with current_app.connection_for_write() as link:
            declared: Any = current_app.amqp.queues[queue](link.default_channel).queue_declare()
            return declared.message_count, 0.0
    age = "coalesce(extract(epoch FROM now() - min(enqueued_at)), 0)::float"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), {age} FROM pgmq.q_{queue} WHERE vt <= now()")
        length, seconds = cursor.fetchone()
    return length, seconds


sweeping = Signal()


SENT_WITHIN = timedelta(seconds=10)


# A task that has not begun after this time may be lost.
BEGUN_WITHIN = timedelta(minutes=5)


MOST_AT_ONCE = 500


def _list_outage_errors() -> tuple[type[BaseException], ...]:
    return (DatabaseError, *current_app.connection_for_write().connection_errors)


def run_job_maintenance() -> None:
    for model in apps.get_models():
        if issubclass(model, Job):
            try:
                enqueue_forgotten_jobs(model)
            except _list_outage_errors():
                logger.exception("The jobs of %s were not swept.", model.__name__)
    sweeping.send_robust(sender=None)


def enqueue_forgotten_jobs(model: type[Job]) -> int:
    """Free the jobs of dead workers, send lost tasks again, and return how many were sent."""
    with transaction.atomic():
        silent = model.unfinished().filter(model.build_stale_lease_condition())
        # The worker of a locked row is alive and is saving a result.
        for job in silent.order_by("pk").select_for_update(of=("self",), skip_locked=True, no_key=True):
            job.interrupt()
    unsent = model.select_next_jobs().filter(
        Q(created_at__lt=Now() - SENT_WITHIN) | Q(retry_at__isnull=False), enqueued_at=None
    )
    waiting = [*_find_lost_jobs(model), *unsent.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE]]
    return enqueue(model, waiting[:MOST_AT_ONCE])


def _find_lost_jobs(model: type[Job]) -> list[int]:
    """Return the ids of jobs whose task is lost.

    If n tasks wait in the queue, they belong to the n jobs that were sent last. So the tasks of earlier jobs are lost,
    unless a worker has taken them in the last moments (BEGUN_WITHIN).
    """
    sent = model.select_next_jobs().exclude(enqueued_at=None)
    late = sent.filter(enqueued_at__lt=Now() - BEGUN_WITHIN).order_by("enqueued_at", "pk")
    if not late.exists():
        return []
    length, _age = count_queued(current_app.amqp.router.route({}, model.TASK)["queue"].name)
    queued = list(sent.order_by("-enqueued_at", "-pk").values_list("pk", flat=True)[:length])
    return list(late.exclude(pk__in=queued).values_list("pk", flat=True)[:MOST_AT_ONCE])
