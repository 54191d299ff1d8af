from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.jobs import Job


class EvaluationJob(Job):
    """Base class of evaluation jobs for workers. A job is QUEUED, then RUNNING while a worker has its lease."""

    QUEUED = WAITING = "queued"
    RUNNING = "running"
    FAILED = "failed"

    status = models.CharField(_("status"), max_length=10, default=QUEUED)
    created_at = models.DateTimeField(_("asked for"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        abstract = True

    @property
    def is_finished(self) -> bool:
        return self.status not in (self.QUEUED, self.RUNNING)

    def end(self, status: str, error: str = "", **values: Any) -> bool:
        return super().end(status, error, finished_at=timezone.now(), **values)


def build_lease_constraint(name: str) -> models.CheckConstraint:
    """Return a constraint: a job has a lease (a worker's reservation) if, and only if, it is running."""
    return models.CheckConstraint(
        condition=Q(status="running", lease__isnull=False) | ~Q(status="running") & Q(lease=None), name=name
    )
