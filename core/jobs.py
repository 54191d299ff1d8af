"""Rows that are jobs. A worker leases a job, renews the lease by a heartbeat, and retries after errors."""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, ClassVar, Self, TypeVar

from django.db import DatabaseError, connection, models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from core.exceptions import LeaseLost

logger = logging.getLogger(__name__)

# The clocks of machines differ, so all times are from the database's clock.


class LeasedModel(models.Model):
    """Base class of rows that only one process may change at a time: the one with the lease.

    ``lease`` is a random token of this process. ``heartbeat_at`` is when the process last showed that it is alive.
    """

    SILENT_AFTER: ClassVar = timedelta(seconds=30)

    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    lease = models.UUIDField(null=True, blank=True, editable=False)
    heartbeat_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    @classmethod
    def build_stale_lease_condition(cls) -> Q:
        return Q(lease__isnull=False, heartbeat_at__lt=Now() - cls.SILENT_AFTER)

    def filter_by_lease(self) -> QuerySet[Self]:
        """Return a queryset with the row; empty if another process has the lease now."""
        return type(self)._default_manager.filter(pk=self.pk, lease=self.lease)

    def lock(self) -> Self:
        """Return the stored row, locked until the transaction ends.

        Raises: LeaseLost if another process has the lease.
        """
        row = self.filter_by_lease().select_for_update(of=("self",), no_key=True).first()
        if row is None:
            raise LeaseLost(f"{self.job_name} is no longer leased to this process.")
        return row

    def write_under_lease(self, **values: Any) -> bool:
        return bool(self.filter_by_lease().update(**values))

    @property
    def job_name(self) -> str:
        return f"{self._meta.verbose_name_raw} {self.pk}"


L = TypeVar("L", bound=LeasedModel)


def acquire_lease(rows: QuerySet[L], pk: object, **values: Any) -> L | None:
    """Lease the row, set its fields ``values``, and return it.

    The result is None if the row is not in ``rows``, or is leased already.
    """
    lease = uuid.uuid4()
    is_free = Q(lease=None) | rows.model.build_stale_lease_condition()
    taken = rows.filter(is_free, pk=pk).update(lease=lease, heartbeat_at=Now(), attempts=F("attempts") + 1, **values)
    # `first` would add an ORDER BY, and Django builds such a query slowly for many columns.
    return next(iter(rows.filter(lease=lease).order_by()), None) if taken else None


HEARTBEAT_SECONDS = 5.0


@contextmanager
def heartbeat(job: LeasedModel) -> Iterator[None]:
    """Run a block while a thread renews the job's lease."""
    stop = threading.Event()
    held, name = job.filter_by_lease(), job.job_name

    def beat() -> None:
        try:
            while not stop.wait(HEARTBEAT_SECONDS):
                try:
                    held.update(heartbeat_at=Now())
                except DatabaseError:
                    logger.warning("The heartbeat of %s was not stored.", name, exc_info=True)
                    connection.close()
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name=f"heartbeat of {name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)


def compute_retry_pause(attempts: int) -> timedelta:
    factor: int = 3 ** min(attempts - 1, 10)
    return min(LONGEST_PAUSE, FIRST_PAUSE * factor)


class Job(LeasedModel):
    """Base class of rows that are jobs: WAITING, then RUNNING while a process has the lease, then finished.

    No worker begins a job before ``retry_at``; None means that it may begin now. ``enqueued_at`` is when the Celery
    task that runs the job was last sent to the queue. A concrete class adds ``status`` and ``created_at``.
    """

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
        return cls._default_manager.filter(status__in=(cls.WAITING, cls.RUNNING))

    @classmethod
    def select_startable_jobs(cls) -> QuerySet[Self]:
        return cls.unfinished().filter(build_retry_due_condition(), lease=None)

    @classmethod
    def select_next_jobs(cls) -> QuerySet[Self]:
        return cls.select_startable_jobs()

    @classmethod
    def get_restart_values(cls) -> dict[str, object]:
        """Return the field values that restart a job. A process that is running the job loses its lease."""
        return {
            "status": cls.WAITING, "error": "", "attempts": 0, "lease": None, "retry_at": None, "enqueued_at": None
        }  # fmt: skip

    @property
    def is_last_attempt(self) -> bool:
        return self.attempts >= self.MOST_ATTEMPTS

    def postpone(self, error: str, pause: timedelta | None = None, **values: Any) -> bool:
        pause = compute_retry_pause(self.attempts) if pause is None else pause
        values = {"status": self.WAITING, "enqueued_at": None, **values}
        return self.write_under_lease(lease=None, error=error, retry_at=Now() + pause, **values)

    def hand_back(self, error: str, pause: timedelta, **values: Any) -> bool:
        """Postpone the job by ``pause``, without counting the attempt, because the job did not cause ``error``."""
        return self.postpone(error, pause, attempts=F("attempts") - 1, **values)

    def end(self, status: str, error: str = "", **values: Any) -> bool:
        return self.write_under_lease(lease=None, status=status, error=error, retry_at=None, **values)

    def retry(self, error: str, pause: timedelta | None = None) -> None:
        if self.is_last_attempt:
            logger.warning("%s failed: %s", self.job_name.capitalize(), error)
            self.end(self.FAILED, error)
        else:
            self.postpone(error, pause)

    def interrupt(self) -> None:
        """End the attempt of a worker that died. The attempt counts, so no job can kill workers forever."""
        self.retry(self.INTERRUPTED % self.attempts if self.is_last_attempt else self.error, timedelta())


def build_retry_due_condition(overdue_by: timedelta = timedelta()) -> Q:
    """Return the condition that a job has been due for at least ``overdue_by``."""
    return Q(retry_at=None) | Q(retry_at__lte=Now() - overdue_by)
