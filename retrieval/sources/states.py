"""Find the states of sources, for the admin and for metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import models
from django.db.models.functions import Now
from django.utils.formats import date_format
from django.utils.timezone import localtime, now
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from retrieval.models import Collection, Source, SourceRun
from retrieval.models.source import is_stale


class SourceState(models.TextChoices):
    NEW = "new", _("not synchronised yet")
    WAITING = "waiting", _("waits for its turn")
    RUNNING = "running", _("being synchronised")
    IN_SYNC = "in_sync", _("in sync")
    INCOMPLETE = "incomplete", _("in sync, except for some items")
    HELD = "held", _("waits for consent to remove documents")
    FAILED = "failed", _("failed")
    STALE = "stale", _("not synchronised for too long")
    PAUSED = "paused", _("paused")
    RECEIVING = "receiving", _("receives documents")


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The state of a source: its current run or preview (``active``), and its last run that has ended (``last``)."""

    state: SourceState
    active: SourceRun | None
    last: SourceRun | None


def find_source_status(source: Source) -> SourceStatus:
    return find_source_statuses([source])[source.pk]


def find_source_statuses(sources: models.QuerySet[Source] | Sequence[Source]) -> dict[int, SourceStatus]:
    """Return the state of each source by its id, in three queries."""
    newest = SourceRun.objects.filter(source__in=sources).order_by("source_id", "-pk").distinct("source_id")
    active = {run.source_id: run for run in newest.filter(status__in=SourceRun.ACTIVE)}
    ended = newest.filter(is_preview=False).exclude(status__in=SourceRun.ACTIVE)
    last = {run.source_id: run for run in ended}
    success = dict(ended.filter(status=SourceRun.Status.DONE).values_list("source_id", "finished_at"))
    statuses = {}
    for source in sources:
        runs = active.get(source.pk), last.get(source.pk)
        statuses[source.pk] = SourceStatus(_find_state(source, *runs, success.get(source.pk)), *runs)
    return statuses


def _find_state(source: Source, active: SourceRun | None, last: SourceRun | None, success: object) -> SourceState:
    if source.is_pushed:
        return SourceState.RECEIVING
    if source.is_paused:
        return SourceState.PAUSED
    if active is not None and not active.is_preview and not active.error:
        return SourceState.RUNNING if active.status == SourceRun.Status.RUNNING else SourceState.WAITING
    if last is not None and last.status == SourceRun.Status.FAILED:
        return SourceState.FAILED
    if is_stale(source, success):
        return SourceState.STALE
    if last is None or last.status != SourceRun.Status.DONE:
        return SourceState.NEW
    if last.kept_back:
        return SourceState.HELD
    return SourceState.INCOMPLETE if last.failed else SourceState.IN_SYNC


def explain_wait(run: SourceRun, collections: models.QuerySet[Collection]) -> str:
    """Return why a run waits, as a sentence that names only sources in ``collections``."""
    if run.error:
        told = {"error": run.error, "time": _show_time(run.retry_at)}
        return _t("The last attempt failed: %(error)s The next one is at %(time)s.") % told
    others = SourceRun.objects.filter(status__in=SourceRun.ACTIVE).exclude(pk=run.pk)
    busy = others.filter(status=SourceRun.Status.RUNNING, heartbeat_at__gte=Now() - SourceRun.SILENT_AFTER)
    current = busy.select_related("source").first()
    if current is None:
        return _t("A worker begins it in a moment. If it still waits after a minute, no worker runs.")
    if collections.filter(pk=current.source.collection_id).exists():
        said = _t("It waits for its turn: one source is read at a time, now %s.") % current.source
    else:
        said = _t("It waits for its turn: one source is read at a time, now another one.")
    if waiting := others.filter(status=SourceRun.Status.WAITING).count():
        more = ngettext("%d other run waits too.", "%d other runs wait too.", waiting)
        said = f"{said} {more % waiting}"
    return said


def _show_time(moment: datetime | None) -> str:
    return date_format(localtime(moment or now()), "TIME_FORMAT")


def count_sources_by_state() -> dict[str, int]:
    states = [status.state for status in find_source_statuses(Source.objects.all()).values()]
    return {state.value: states.count(state) for state in SourceState}
