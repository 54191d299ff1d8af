"""One run of a source: leased, attempted, and ended or tried again. What it does is in ``comparison``."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext as _t

from retrieval.drafts.editing import reason_not_to_change
from retrieval.exceptions import DiskFull, FilesUnavailable, LeaseLost, RetrievalError
from retrieval.jobs.heartbeat import heartbeat
from retrieval.jobs.lease import acquire
from retrieval.models import SourceRun
from retrieval.sources.kinds import KINDS
from retrieval.sources.options import all_options
from retrieval.sources.protocol import SourceRefused, SourceUnavailable
from retrieval.sources.runs.comparison import Comparison, TimeIsUp

logger = logging.getLogger(__name__)

SITE_AWAITED = timedelta(minutes=1)
# Runs on the whole site: each takes a slot of a worker, which documents need as well.
AT_ONCE = 1
TURN_AWAITED = timedelta(seconds=15)
_TURNS_LOCK = 5_118_204_377_610_945_213


def sync(run_id: int, *, takes_turns: bool = False) -> SourceRun | None:
    """The run, after one attempt; None when there was nothing to lease.

    With ``takes_turns``, which a worker asks for, the run waits while AT_ONCE others are under way. Whatever
    goes wrong is on the row afterwards: FAILED when another attempt cannot help, else WAITING with the time of the next
    one.
    """
    run = _lease_in_turn(run_id) if takes_turns else _lease(run_id)
    if run is None:
        return None
    started = time.monotonic()
    try:
        with heartbeat(run):
            _attempt(run)
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except TimeIsUp:
        run.hand_back("", timedelta())
    except SourceRefused as error:
        run.end(SourceRun.FAILED, str(error))
    except SourceUnavailable as error:
        if run.is_last_attempt:
            run.end(SourceRun.FAILED, str(error))
        else:
            run.postpone(str(error), error.pause)
    except (DiskFull, FilesUnavailable) as error:
        run.hand_back(str(error), SITE_AWAITED)
    except Exception as error:
        logger.exception("Source %s could not be synchronised.", run.source_id)
        run.retry(str(error) if isinstance(error, RetrievalError) else type(error).__name__)
    SourceRun.objects.filter(pk=run.pk).update(seconds=F("seconds") + (time.monotonic() - started))
    run.refresh_from_db()
    return run


def _lease(run_id: int) -> SourceRun | None:
    rows = SourceRun.unfinished().select_related("source__collection")
    return acquire(rows, run_id, status=SourceRun.RUNNING, error="")


def _lease_in_turn(run_id: int) -> SourceRun | None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Two workers that both counted before either leased would both go on.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_TURNS_LOCK])
        alive = SourceRun.objects.filter(heartbeat_at__gte=Now() - SourceRun.SILENT_AFTER)
        if alive.filter(status=SourceRun.RUNNING).exclude(pk=run_id).count() < AT_ONCE:
            return _lease(run_id)
        waiting = SourceRun.objects.filter(pk=run_id, status=SourceRun.WAITING)
        waiting.update(retry_at=Now() + TURN_AWAITED, enqueued_at=None)
        return None


def _attempt(run: SourceRun) -> None:
    source = run.source
    kind = KINDS.get(source.kind)
    if kind is None:
        raise SourceRefused(_t("This site knows no sources of the kind %s.") % source.kind)
    if reason := reason_not_to_change(source.collection):
        raise SourceRefused(reason)
    comparison = Comparison(run)
    cursor = dict(source.cursor) if comparison.is_whole else {}
    with kind.connector(all_options(source), cursor, source.pk) as connector:
        comparison.work(connector)
