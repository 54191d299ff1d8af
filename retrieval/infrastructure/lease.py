"""The lease: the right to work on a row. One process has it at a time, and loses it when it falls silent.

All times of leases are those of the database's clock: the clocks of machines differ.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, ClassVar, Self, TypeVar

from django.db import models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from retrieval.exceptions import LeaseLost


class Leased(models.Model):
    """A row that one process works on at a time.

    ``lease`` is the random token of the process that may write, ``heartbeat_at`` the time of its last sign of life, and
    ``attempts`` how often the row was leased. An instance holds the lease that it had when it was loaded.
    """

    # A process without a heartbeat for this long is taken to be dead.
    SILENT_AFTER: ClassVar = timedelta(seconds=30)

    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    lease = models.UUIDField(null=True, blank=True, editable=False)
    heartbeat_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    @classmethod
    def is_silent(cls) -> Q:
        """The condition that a row is leased to a process that is taken to be dead."""
        return Q(lease__isnull=False, heartbeat_at__lt=Now() - cls.SILENT_AFTER)

    def held(self) -> QuerySet[Self]:
        """The row while this lease holds; else no row."""
        return type(self)._default_manager.filter(pk=self.pk, lease=self.lease)

    def lock(self) -> Self:
        """The row as it is now, locked until the transaction ends. Raises: LeaseLost."""
        row = self.held().select_for_update(of=("self",), no_key=True).first()
        if row is None:
            raise LeaseLost(f"{self.job_name} is no longer leased to this process.")
        return row

    def write(self, **values: Any) -> bool:
        """Update the row; False, and nothing is written, when the lease was lost."""
        return bool(self.held().update(**values))

    @property
    def job_name(self) -> str:
        """The row in a log message."""
        return f"{self._meta.verbose_name_raw} {self.pk}"


L = TypeVar("L", bound=Leased)


def acquire(rows: QuerySet[L], pk: object, **values: Any) -> L | None:
    """The row, if it is among ``rows``, leased to the caller and updated with ``values``.

    None when it is not among them, or leased to a process that is alive. One UPDATE decides: of two callers one
    succeeds.
    """
    lease = take(rows, pk, **values)
    return rows.filter(lease=lease).first() if lease is not None else None


def take(rows: QuerySet[L], pk: object, **values: Any) -> uuid.UUID | None:
    """As `acquire`, for who knows the row; returns the lease."""
    lease = uuid.uuid4()
    is_free = Q(lease=None) | rows.model.is_silent()
    taken = rows.filter(is_free, pk=pk).update(lease=lease, heartbeat_at=Now(), attempts=F("attempts") + 1, **values)
    return lease if taken else None


def renew(held: QuerySet[Any]) -> int:
    """Store a heartbeat for these leased rows; returns how many there are still."""
    return held.update(heartbeat_at=Now())
