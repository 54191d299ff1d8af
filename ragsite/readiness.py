"""The checks of the site and its processes for /readyz."""

from __future__ import annotations

import logging
import time

from celery import current_app
from django.conf import settings
from django.db.models.functions import Coalesce, Now

from core import breaker, disk
from core.readiness import DATABASE, MACHINE, CheckGroup, CheckResult, Health, add_group
from ragsite.models import SlackQuestion
from ragsite.operations.queues import WAITS_FOR_NOBODY_AFTER
from ragsite.processes import local_model

logger = logging.getLogger(__name__)

# The scheduler sets the time of a file every few seconds. If the file is older than this, the scheduler has died.
SCHEDULER_LOST_AFTER_SECONDS = 120.0
BROKER_TIMEOUT_SECONDS = 3
_BROKER = add_group(CheckGroup())


@_BROKER.check("broker", is_remembered=True)
def check_broker() -> CheckResult:
    try:
        with current_app.connection_for_write(connect_timeout=BROKER_TIMEOUT_SECONDS) as link:
            try:
                link.ensure_connection(max_retries=1, timeout=BROKER_TIMEOUT_SECONDS)
            except Exception:
                # pgmq's transport does not close its pool if its first query fails.
                client = getattr(link.transport, "_pgmq_client", None)
                if client is not None:
                    client.pool.close()
                raise
    except Exception:  # Each transport has its own exceptions.
        logger.exception("The broker does not answer.")
        return CheckResult(Health.DEGRADED, "The broker does not answer: new documents wait until it does.")
    return CheckResult()


@MACHINE.check("disk")
def check_disk_space() -> CheckResult:
    short = min(disk.list_free_space(), key=lambda room: room.free_bytes, default=None)
    if short is None:
        return CheckResult()
    free = f"{short.free_bytes // 2**20} MiB are free"
    if short.free_bytes < settings.DISK_RESERVE_BYTES:
        reserve = f"{free}, less than {settings.DISK_RESERVE_BYTES // 2**20} MiB"
        return CheckResult(Health.DEGRADED, f"The disk is full ({reserve}): nothing is saved until there is room.")
    if short.free_bytes < 2 * settings.DISK_RESERVE_BYTES:
        return CheckResult(Health.DEGRADED, f"The disk is nearly full ({free}): make room.")
    return CheckResult(detail=f"{free}.")


@MACHINE.check("scheduler")
def check_scheduler() -> CheckResult:
    """Check that the scheduler runs, if it has ever run with this data directory."""
    seen = settings.SCHEDULER_SEEN_FILE
    if seen.exists() and time.time() - seen.stat().st_mtime > SCHEDULER_LOST_AFTER_SECONDS:
        return CheckResult(
            Health.DEGRADED,
            "The scheduler does not run: what was interrupted is not resumed. "
            "Start `python -m ragsite.processes.beat`.",
        )
    return CheckResult()


@MACHINE.check("breakers")
def check_breakers() -> CheckResult:
    failing = [part for part, state in breaker.list_breaker_states().items() if state != breaker.BreakerState.CLOSED]
    if failing:
        return CheckResult(Health.DEGRADED, f"Failed repeatedly and asked again after a pause: {', '.join(failing)}.")
    return CheckResult()


@MACHINE.check("language_model")
def check_language_model() -> CheckResult:
    if settings.LOCAL_MODEL and not local_model.is_ready():
        return CheckResult(
            Health.DEGRADED,
            "The local language model does not run; answers are quoted from the documents.",
        )
    return CheckResult(detail=settings.OPENAI_MODEL)


@DATABASE.check("slack")
def check_slack() -> CheckResult:
    waiting = SlackQuestion.select_waiting_questions().annotate(since=Coalesce("retry_at", "created_at"))
    if settings.SLACK_BOT_TOKEN and waiting.filter(since__lt=Now() - WAITS_FOR_NOBODY_AFTER).exists():
        return CheckResult(
            Health.DEGRADED,
            "Questions from Slack wait: start `python -m ragsite.processes.slack_app`; its log says why.",
        )
    return CheckResult()
