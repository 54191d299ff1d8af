from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Job(models.Model):
    """A row that is its own job: QUEUED until a worker claims it, RUNNING while that worker's heart beats.

    ``claim`` is the token of the one worker that may write, ``next_attempt_at`` the time before which nobody begins
    (empty: at once), ``enqueued_at`` when a worker was last told (empty: not yet). While an attempt is still to come,
    ``error`` says why the last one failed. The way of a job is in `evaluation.jobs`.
    """

    QUEUED = "queued"
    RUNNING = "running"
    FAILED = "failed"

    # A concrete job declares it again, with the choices that are its own.
    status = models.CharField(_("status"), max_length=10, default=QUEUED)
    error = models.TextField(_("error"), blank=True)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    claim = models.UUIDField(null=True, editable=False)
    heartbeat_at = models.DateTimeField(null=True, editable=False)
    next_attempt_at = models.DateTimeField(_("next attempt"), null=True, blank=True)
    enqueued_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(_("asked for"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        abstract = True

    @property
    def is_finished(self) -> bool:
        return self.status not in (self.QUEUED, self.RUNNING)


def running_is_claimed(name: str) -> models.CheckConstraint:
    """The constraint that a row has a claim if, and only if, a worker is busy with it."""
    return models.CheckConstraint(
        condition=Q(status="running", claim__isnull=False) | ~Q(status="running") & Q(claim=None), name=name
    )
