"""The sweep: jobs of dead workers are freed, and jobs without a task are enqueued."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.apps import apps
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.dispatch import Signal

from retrieval.infrastructure.job import Job, enqueue, is_due

logger = logging.getLogger(__name__)

# Sent by `sweep_all`, for leased rows that are not jobs of a worker.
sweeping = Signal()

# A row younger than this is just being enqueued by the process that saved it.
SENT_WITHIN = timedelta(seconds=10)
# A task that no worker began within this time is sent again.
BEGUN_WITHIN = timedelta(minutes=5)
MOST_AT_ONCE = 500


def sweep_all() -> None:
    """Sweep every kind of job. A kind that fails does not stop the others."""
    for model in apps.get_models():
        if issubclass(model, Job):
            try:
                sweep(model)
            except DatabaseError:
                logger.exception("The jobs of %s were not swept.", model.__name__)
    sweeping.send_robust(sender=None)


def sweep(model: type[Job]) -> int:
    """Free every job whose worker is silent, and enqueue every one that waits without a task.

    Returns how many were enqueued.
    """
    with transaction.atomic():
        silent = model.unfinished().filter(model.is_silent())
        # A row that is locked belongs to a worker that is alive: it saves its result.
        for job in silent.order_by("pk").select_for_update(of=("self",), skip_locked=True, no_key=True):
            job.interrupt()
    is_forgotten = (
        Q(enqueued_at=None, created_at__lt=Now() - SENT_WITHIN)
        | Q(enqueued_at=None, retry_at__isnull=False)
        | Q(enqueued_at__lt=Now() - BEGUN_WITHIN)
    )
    waiting = model.unfinished().filter(is_due(), is_forgotten, lease=None)
    return enqueue(model, list(waiting.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE]))
