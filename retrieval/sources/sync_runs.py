"""Request, lease, attempt, retry and end runs, which read a source. `comparing` does the work of a run."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _t

from core.audit_signal import record_event
from core.exceptions import DiskFull, FilesUnavailable, LeaseLost, RagsiteError
from core.job_queue import enqueue_on_commit
from core.jobs import acquire_lease, heartbeat
from retrieval.documents.drafts.editing import find_reason_not_to_add, lock_collections_for_change
from retrieval.models import Source, SourceRun
from retrieval.models.source import PUSH
from retrieval.sources.comparing import SourceComparison
from retrieval.sources.kinds import KINDS
from retrieval.sources.options import lock_source_metadata, read_all_options
from retrieval.sources.protocol import RunAttemptTimedOut, SourceUnavailable, SourceUnreadable

logger = logging.getLogger(__name__)

SITE_AWAITED = timedelta(minutes=1)
# Limit of active runs on the whole site. Each occupies a worker, and documents need workers too.
AT_ONCE = 1
TURN_AWAITED = timedelta(seconds=15)
_TURNS_LOCK = 5_118_204_377_610_945_213


def attempt_source_run(run_id: int, *, takes_turns: bool = False) -> SourceRun | None:
    """Attempt the run once, and return it; None if another worker has it, or it must wait.

    The run waits while AT_ONCE others are active, if ``takes_turns`` is set. Errors are stored in the run's row, with
    status FAILED, or WAITING for another attempt.
    """
    run = _lease_if_slot_free(run_id) if takes_turns else _lease_run(run_id)
    if run is None:
        return None
    started = time.monotonic()
    try:
        with heartbeat(run):
            _compare_with_source(run)
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except RunAttemptTimedOut:
        run.hand_back("", timedelta())
    except SourceUnreadable as error:
        run.end(SourceRun.FAILED, str(error))
    except SourceUnavailable as error:
        run.retry(str(error), error.pause)
    except (DiskFull, FilesUnavailable) as error:
        run.hand_back(str(error), SITE_AWAITED)
    except Exception as error:
        logger.exception("Source %s could not be synchronised.", run.source_id)
        run.retry(str(error) if isinstance(error, RagsiteError) else type(error).__name__)
    SourceRun.objects.filter(pk=run.pk).update(seconds=F("seconds") + (time.monotonic() - started))
    run.refresh_from_db()
    return run


def _lease_run(run_id: int) -> SourceRun | None:
    rows = SourceRun.unfinished().select_related("source__collection")
    return acquire_lease(rows, run_id, status=SourceRun.RUNNING, error="")


def _lease_if_slot_free(run_id: int) -> SourceRun | None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Without a lock, two workers could both count the active runs before either has leased one.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_TURNS_LOCK])
        alive = SourceRun.objects.filter(heartbeat_at__gte=Now() - SourceRun.SILENT_AFTER)
        if alive.filter(status=SourceRun.RUNNING).exclude(pk=run_id).count() < AT_ONCE:
            return _lease_run(run_id)
        waiting = SourceRun.objects.filter(pk=run_id, status=SourceRun.WAITING)
        waiting.update(retry_at=Now() + TURN_AWAITED, enqueued_at=None)
        return None


def _compare_with_source(run: SourceRun) -> None:
    source = run.source
    kind = KINDS.get(source.kind)
    if kind is None:
        raise SourceUnreadable(_t("This site has no sources of the kind %s.") % source.kind)
    if reason := find_reason_not_to_add(source.collection):
        raise SourceUnreadable(reason)
    with kind(read_all_options(source), source.pk) as connector:
        connector.is_preview, connector.run = run.is_preview, run.pk
        SourceComparison(run).compare_and_store(connector)


class SourceRunRefused(RagsiteError):
    """An error: the run cannot begin now. The message is for the person who requested it."""


def request_run(
    source: Source, *, is_preview: bool = False, may_remove: bool = False, enqueue: bool = True
) -> SourceRun:
    """Queue a run for a worker.

    Raises: SourceRunRefused if a run is active, or if programs send the source's documents.
    """
    if source.is_pushed:
        raise SourceRunRefused(_t("%s is not read: programs send documents to it.") % source)
    try:
        with transaction.atomic():
            run = SourceRun.objects.create(source=source, is_preview=is_preview, may_remove=may_remove)
            if not is_preview:
                interval = timedelta(minutes=source.interval_minutes)
                source.next_run_at = timezone.now() + interval if source.interval_minutes else None
                Source.objects.filter(pk=source.pk).update(next_run_at=source.next_run_at)
            if enqueue:
                enqueue_on_commit(SourceRun, [run.pk])
    except IntegrityError:
        raise SourceRunRefused(_t("%s is already being read: wait until that is done.") % source) from None
    return run


def request_audited_run(source: Source, *, is_preview: bool = False, may_remove: bool = False) -> SourceRun:
    """Queue a run, and write an event to the audit log. A paused source that never ran is resumed."""
    with transaction.atomic():
        if source.is_paused and not is_preview and not source.runs.filter(is_preview=False).exists():
            source.is_paused = False
            source.save(update_fields=["is_paused"])
        run = request_run(source, is_preview=is_preview, may_remove=may_remove)
        action = (
            "source.previewed" if is_preview else "source.removals_allowed" if may_remove else "source.synchronised"
        )
        record_event(action, source)
    return run


def request_due_runs() -> int:
    """Request a run for each source whose interval is over. Return the number of runs."""
    now = timezone.now()
    due = Source.objects.filter(Q(next_run_at=None) | Q(next_run_at__lte=now), is_paused=False, interval_minutes__gt=0)
    requested = 0
    for source in due.exclude(kind=PUSH).exclude(runs__status__in=SourceRun.ACTIVE):
        try:
            request_run(source)
            requested += 1
        except SourceRunRefused:
            continue
    return requested


def pause_source(source: Source) -> None:
    """Stop the active run, and begin no other until the source is resumed. Changed documents stay changed."""
    with transaction.atomic():
        source.is_paused = True
        source.save(update_fields=["is_paused"])
        stop_run(source)


def resume_source(source: Source) -> None:
    source.is_paused = False
    source.next_run_at = timezone.now()
    source.save(update_fields=["is_paused", "next_run_at"])


def stop_run(source: Source) -> None:
    active = source.runs.filter(status__in=SourceRun.ACTIVE)
    active.update(status=SourceRun.Status.STOPPED, lease=None, retry_at=None, finished_at=timezone.now())


def delete_source(source: Source, *, with_documents: bool) -> int:
    """Delete the source, and its documents if ``with_documents``. Return the number of deleted documents.

    The source's documents that are not deleted become uploads. Raises: DocumentRejected if the collection's documents
    may not be changed.
    """
    removed = 0
    with transaction.atomic():
        # Runs and pushes lock the source before its collection, so this order avoids deadlocks.
        lock_source_metadata(source)
        stop_run(source)
        if with_documents:
            with lock_collections_for_change(source.collection_id):
                for document in source.own_documents:
                    document.delete()
                    removed += 1
        source.delete()
    return removed


def finish_run_in_process(run: SourceRun) -> SourceRun:
    """Attempt the run in this process until it ends or an attempt fails. Return the run."""
    while True:
        before = run.attempts
        attempted = attempt_source_run(run.pk)
        run.refresh_from_db()
        if attempted is None or not run.is_active or run.error or run.attempts > before:
            return run
