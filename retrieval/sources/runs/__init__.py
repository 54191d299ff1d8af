"""Runs that are asked for: by the schedule, or by somebody."""

from __future__ import annotations

from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _t

from retrieval.drafts.editing import changing
from retrieval.exceptions import RetrievalError
from retrieval.jobs.job import enqueue_on_commit
from retrieval.models import Source, SourceRun
from retrieval.observability.record import tell


class RunRefused(RetrievalError):
    """What was asked for cannot be begun now. For whoever asked."""


def request_run(
    source: Source, *, is_preview: bool = False, may_remove: bool = False, enqueue: bool = True
) -> SourceRun:
    """A run that a worker does. Raises: RunRefused while another one is under way."""
    try:
        with transaction.atomic():
            run = SourceRun.objects.create(source=source, is_preview=is_preview, may_remove=may_remove)
            if not is_preview:
                plan_next(source)
            if enqueue:
                enqueue_on_commit(SourceRun, [run.pk])
    except IntegrityError:
        raise RunRefused(_t("%s is being looked at already: wait until that is done.") % source) from None
    return run


def ask_for(source: Source, *, is_preview: bool = False, may_remove: bool = False) -> SourceRun:
    """As :func:`request_run`, put on record as somebody's wish."""
    with transaction.atomic():
        run = request_run(source, is_preview=is_preview, may_remove=may_remove)
        action = (
            "source.previewed" if is_preview else "source.removals_allowed" if may_remove else "source.synchronised"
        )
        tell(action, source)
    return run


def request_due() -> int:
    """Request a run of every source whose time has come; returns how many."""
    now = timezone.now()
    due = Source.objects.filter(Q(next_run_at=None) | Q(next_run_at__lte=now), is_paused=False, interval_minutes__gt=0)
    requested = 0
    for source in due.exclude(runs__status__in=SourceRun.ACTIVE):
        try:
            request_run(source)
            requested += 1
        except RunRefused:
            # Somebody was quicker.
            continue
    return requested


def plan_next(source: Source) -> None:
    """Have the schedule begin the next run one interval from now."""
    pause = timedelta(minutes=source.interval_minutes)
    source.next_run_at = timezone.now() + pause if source.interval_minutes else None
    Source.objects.filter(pk=source.pk).update(next_run_at=source.next_run_at)


def pause(source: Source) -> None:
    """Stop the run that is under way, and begin no other. What it has done stays."""
    with transaction.atomic():
        source.is_paused = True
        source.save(update_fields=["is_paused"])
        stop(source)


def resume(source: Source) -> None:
    source.is_paused = False
    source.next_run_at = timezone.now()
    source.save(update_fields=["is_paused", "next_run_at"])


def stop(source: Source) -> None:
    """End the run that is under way; its worker finds that it has lost the lease."""
    active = source.runs.filter(status__in=SourceRun.ACTIVE)
    active.update(status=SourceRun.Status.STOPPED, lease=None, retry_at=None, finished_at=timezone.now())


def delete(source: Source, *, with_documents: bool) -> int:
    """Delete the source, and with ``with_documents`` what came from it; returns how many documents went.

    Those that stay are as if they had been uploaded. Raises: DocumentRejected when the collection's documents may not
    be changed.
    """
    removed = 0
    with transaction.atomic():
        stop(source)
        if with_documents:
            with changing(source.collection_id):
                for document in source.own_documents:
                    document.delete()
                    removed += 1
        source.delete()
    return removed


def finish_in_process(run: SourceRun) -> SourceRun:
    """Do the run here, attempt after attempt as long as each gets on, and return it as it is then."""
    from retrieval.sources.runs.syncing import sync

    while True:
        before = run.attempts
        attempted = sync(run.pk)
        run.refresh_from_db()
        # A run that was handed back got on; what failed waits for the time of its next attempt.
        if attempted is None or not run.is_active or run.error or run.attempts > before:
            return run
