"""How sources are: for lists, the API and metrics."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import models
from django.utils.translation import gettext_lazy as _

from retrieval.models import Source, SourceRun
from retrieval.models.source import is_stale


class SourceState(models.TextChoices):
    NEW = "new", _("not synchronised yet")
    RUNNING = "running", _("being synchronised")
    IN_SYNC = "in_sync", _("in sync")
    INCOMPLETE = "incomplete", _("in sync, but for some items")
    HELD = "held", _("waits for consent to remove documents")
    FAILED = "failed", _("failed")
    STALE = "stale", _("not synchronised for too long")
    PAUSED = "paused", _("paused")


@dataclass(frozen=True, slots=True)
class Standing:
    """``active`` is the run under way, a preview too; ``last`` the newest that has ended and was no preview."""

    state: SourceState
    active: SourceRun | None
    last: SourceRun | None


def standing_of(source: Source) -> Standing:
    active = source.active_run
    runs = source.runs.filter(is_preview=False).exclude(status__in=SourceRun.ACTIVE)
    last = runs.first()
    success = runs.filter(status=SourceRun.Status.DONE).values_list("finished_at", flat=True).first()
    return Standing(_state(source, active, last, success), active, last)


def _state(source: Source, active: SourceRun | None, last: SourceRun | None, success: object) -> SourceState:
    if source.is_paused:
        return SourceState.PAUSED
    if active is not None and not active.is_preview and not active.error:
        return SourceState.RUNNING
    if last is not None and last.status == SourceRun.Status.FAILED:
        return SourceState.FAILED
    if is_stale(source, success):
        return SourceState.STALE
    if last is None or last.status != SourceRun.Status.DONE:
        return SourceState.NEW
    if last.kept_back:
        return SourceState.HELD
    return SourceState.INCOMPLETE if last.failed else SourceState.IN_SYNC


def count_states() -> dict[str, int]:
    """How many sources are in each state."""
    counts = dict.fromkeys(SourceState.values, 0)
    for source in Source.objects.all():
        counts[standing_of(source).state] += 1
    return counts
