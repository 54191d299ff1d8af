"""Judging one answer: claim its row, measure, store each score as it comes, and tell the truth about the rest.

A worker that dies stops beating and loses its claim; what it had measured stays, and its successor measures the rest.
An error is stored as an error, tried again later each time, and never turned into a number.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from evaluation import conf
from evaluation.budget import JudgementMeter
from evaluation.judges.cases import case_of
from evaluation.judges.exceptions import BudgetSpent, ClaimLost, JudgeError, NotMeasurable, UnusableJudgement
from evaluation.models import Judgement, Score

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)


def judge(judgement_id: int) -> Judgement | None:
    """The judgement, carried as far as it would go; None when there was nothing to claim, or the claim was lost.

    Whatever goes wrong is on the row afterwards, with the time of the next attempt unless that cannot help.
    """
    judgement = _claim(judgement_id)
    if judgement is None:
        return None
    try:
        with _heartbeat(judgement):
            _measure(judgement)
    except ClaimLost as error:
        logger.info("%s", error)
        return None
    except BudgetSpent as error:
        _end(judgement, Judgement.Status.SKIPPED, str(error))
    except JudgeError as error:
        _postpone(judgement, str(error))
    except Exception as error:
        logger.exception("Answer %s could not be judged.", judgement.answer_id)
        _postpone(judgement, f"{type(error).__name__}: {error}")
    judgement.refresh_from_db()
    return judgement


def _claim(judgement_id: int) -> Judgement | None:
    now = timezone.now()
    claimed = Judgement.objects.filter(
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now), pk=judgement_id, status=Judgement.Status.QUEUED
    ).update(status=Judgement.Status.RUNNING, claim=uuid.uuid4(), heartbeat_at=now, attempts=F("attempts") + 1)
    if not claimed:
        return None
    return Judgement.objects.select_related("answer").get(pk=judgement_id)


@contextmanager
def _heartbeat(judgement: Judgement) -> Iterator[None]:
    """Keep telling, from a thread of its own, that the claim's holder lives."""
    stop = threading.Event()

    def beat() -> None:
        try:
            while not stop.wait(HEARTBEAT_SECONDS):
                try:
                    _held(judgement).update(heartbeat_at=timezone.now())
                except DatabaseError:
                    # The database is away for a moment; should it last, the claim is lost and the work done again.
                    logger.warning("The heartbeat of judgement %s was not stored.", judgement.pk, exc_info=True)
                    connection.close()
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name=f"heartbeat of judgement {judgement.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _measure(judgement: Judgement) -> None:
    """Measure what has not been measured yet. Raises: JudgeError, which says what could not be."""
    case = case_of(judgement.answer, judgement.reference)
    judge = conf.judge(judgement.judge, JudgementMeter(judgement))
    _held(judgement).update(judge_name=judge.name)
    metrics = judge.metrics(case)
    if not metrics:
        _end(judgement, Judgement.Status.SKIPPED, "There is nothing to judge: the answer refuses, without any source.")
        return
    measured = set(judgement.scores.filter(score__isnull=False).values_list("metric", flat=True))
    problems: list[str] = []
    another_attempt_helps = False
    for metric in metrics:
        if metric in measured:
            continue
        started = time.perf_counter()
        try:
            result = judge.measure(metric, case)
        except (BudgetSpent, ClaimLost):
            raise
        except JudgeError as error:
            _save(judgement, metric, started, score=None, error=str(error))
            problems.append(f"{Score.Metric(metric).label}: {error}")
            another_attempt_helps = another_attempt_helps or not isinstance(error, NotMeasurable)
            if not isinstance(error, UnusableJudgement):
                break
        else:
            _save(
                judgement,
                metric,
                started,
                score=result.score,
                error="",
                reason=result.reason,
                threshold=result.threshold,
                details=list(result.details),
            )
    if another_attempt_helps:
        raise JudgeError(" ".join(problems))
    _end(judgement, Judgement.Status.FAILED if problems else Judgement.Status.DONE, " ".join(problems))


def _save(judgement: Judgement, metric: str, started: float, **values: Any) -> None:
    """Raises: ClaimLost; then nothing is written."""
    milliseconds = (time.perf_counter() - started) * 1000
    with transaction.atomic():
        if _held(judgement).select_for_update().first() is None:
            raise ClaimLost(f"Judgement {judgement.pk} is no longer claimed by this worker.")
        Score.objects.update_or_create(
            judgement=judgement, metric=metric, defaults={**values, "milliseconds": round(milliseconds, 1)}
        )


def _postpone(judgement: Judgement, reason: str) -> None:
    """Plan another attempt, later each time; after JUDGE_ATTEMPTS leave the judgement to the admin."""
    if judgement.attempts >= settings.JUDGE_ATTEMPTS:
        logger.warning("Answer %s was not judged: %s", judgement.answer_id, reason)
        _end(judgement, Judgement.Status.FAILED, reason)
        return
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 3 ** (judgement.attempts - 1))
    _held(judgement).update(
        status=Judgement.Status.QUEUED,
        error=reason,
        claim=None,
        next_attempt_at=timezone.now() + pause,
        enqueued_at=None,
    )


def _end(judgement: Judgement, status: Judgement.Status, error: str = "") -> None:
    _held(judgement).update(status=status, error=error, claim=None, next_attempt_at=None, finished_at=timezone.now())


def _held(judgement: Judgement) -> Any:
    """The row, as long as this worker's claim on it holds."""
    return Judgement.objects.filter(pk=judgement.pk, claim=judgement.claim)
