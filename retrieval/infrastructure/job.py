"""A row that is its own job. No broker can lose or double it: the sweep enqueues what the broker forgot."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar, Self

from celery import current_app
from django.db import models, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from kombu.exceptions import OperationalError

from retrieval.infrastructure.commits import not_waiting
from retrieval.infrastructure.lease import Leased

logger = logging.getLogger(__name__)

FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)


class Job(Leased):
    """A row that a worker has to do something with: WAITING, RUNNING while a worker has its lease, then ended.

    ``retry_at`` is the time before which no worker begins (None: at once), ``enqueued_at`` when the task was last sent
    (None: not yet). While an attempt is still to come, ``error`` says why the last one failed. A concrete job has the
    fields ``status`` and ``created_at``.
    """

    # The name of the Celery task that does the job of the given id.
    TASK: ClassVar[str]
    WAITING: ClassVar[Any]
    RUNNING: ClassVar[str]
    FAILED: ClassVar[str]
    MOST_ATTEMPTS: ClassVar = 5
    INTERRUPTED: ClassVar = "It was interrupted %d times: the worker may run out of memory."

    error = models.TextField(_("error"), blank=True)
    retry_at = models.DateTimeField(_("next attempt"), null=True, blank=True)
    enqueued_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    @classmethod
    def unfinished(cls) -> QuerySet[Self]:
        """The rows that wait for a worker or that one works on."""
        return cls._default_manager.filter(status__in=(cls.WAITING, cls.RUNNING))

    @classmethod
    def restart_values(cls) -> dict[str, Any]:
        """The values with which a job begins again. A worker that works on it loses its lease."""
        return {
            "status": cls.WAITING, "error": "", "attempts": 0, "lease": None, "retry_at": None, "enqueued_at": None
        }  # fmt: skip

    @property
    def is_last_attempt(self) -> bool:
        return self.attempts >= self.MOST_ATTEMPTS

    def postpone(self, error: str, pause: timedelta | None = None, **values: Any) -> bool:
        """Release the lease for another attempt after ``pause``, by default longer each time."""
        if pause is None:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 3 ** min(self.attempts - 1, 10))
        values = {"status": self.WAITING, "enqueued_at": None, **values}
        return self.write(lease=None, error=error, retry_at=Now() + pause, **values)

    def hand_back(self, error: str, pause: timedelta, **values: Any) -> bool:
        """As ``postpone``, for a reason that is not the job's own: this attempt does not count."""
        return self.postpone(error, pause, attempts=F("attempts") - 1, **values)

    def end(self, status: str, error: str = "", **values: Any) -> bool:
        """Release the lease for good."""
        return self.write(lease=None, status=status, error=error, retry_at=None, **values)

    def retry(self, error: str) -> None:
        """Postpone the job; after the last attempt, end it as FAILED and leave it to the admin."""
        if self.is_last_attempt:
            logger.warning("%s failed: %s", self.job_name.capitalize(), error)
            self.end(self.FAILED, error)
        else:
            self.postpone(error)

    def interrupt(self) -> None:
        """Take the lease from a dead worker. A job that kills its workers would do so for ever, and is ended."""
        if self.is_last_attempt:
            self.end(self.FAILED, self.INTERRUPTED % self.attempts)
        else:
            self.postpone(self.error, timedelta())


def is_due(ago: timedelta = timedelta()) -> Q:
    """The condition that a worker may begin the job, or could have begun it some time ago."""
    return Q(retry_at=None) | Q(retry_at__lte=Now() - ago)


def enqueue(model: type[Job], ids: Iterable[int]) -> int:
    """Send the task of each job; returns how many were sent. What the broker does not take, the sweep sends later."""
    sent = 0
    for pk in ids:
        started = time.monotonic()
        try:
            send(model.TASK, pk)
        except OperationalError as error:
            logger.warning("The broker did not take %s %s (%s).", model._meta.verbose_name_raw, pk, error)
            break
        sent += 1
        # A job that a quick worker has tried and postponed meanwhile is not due: its next task has not been sent.
        with not_waiting():
            ago = timedelta(seconds=time.monotonic() - started)
            model._default_manager.filter(is_due(ago), pk=pk, lease=None).update(enqueued_at=Now() - ago)
    return sent


def enqueue_on_commit(model: type[Job], ids: Iterable[int]) -> None:
    """As ``enqueue``, after the transaction. The caller has saved its jobs by then, and hears of no error."""
    transaction.on_commit(lambda: enqueue(model, ids), robust=True)


def send(task: str, pk: int) -> None:
    """Send a task by its name, so that the modules that enqueue do not import those that do the work."""
    current_app.send_task(task, (pk,))
