"""Judging one answer: claim its row, measure, store each score as it comes, and tell the truth about the rest.

A worker that dies stops beating and loses its claim; what it had measured stays, and its successor measures the rest.
An error is stored as an error, tried again later each time, and never turned into a number.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from evaluation import conf, jobs
from evaluation.judgements.budget import JudgementMeter
from evaluation.judges.cases import case_of
from evaluation.judges.exceptions import BudgetSpent, ClaimLost, JudgeError, NotMeasurable, UnusableJudgement
from evaluation.models import Judgement, Score

logger = logging.getLogger(__name__)

FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)


def judge(judgement_id: int) -> Judgement | None:
    """The judgement, carried as far as it would go; None when there was nothing to claim, or the claim was lost.

    Whatever goes wrong is on the row afterwards, with the time of the next attempt unless that cannot help.
    """
    judgement = jobs.claim(judgement_id, Judgement.objects.select_related("answer"))
    if judgement is None:
        return None
    try:
        with jobs.beating(judgement):
            _measure(judgement)
    except ClaimLost as error:
        logger.info("%s", error)
        return None
    except BudgetSpent as error:
        jobs.end(judgement, Judgement.Status.SKIPPED, error=str(error))
    except JudgeError as error:
        _postpone(judgement, str(error))
    except Exception as error:
        logger.exception("Answer %s could not be judged.", judgement.answer_id)
        _postpone(judgement, f"{type(error).__name__}: {error}")
    judgement.refresh_from_db()
    return judgement


def _measure(judgement: Judgement) -> None:
    """Measure what has not been measured yet. Raises: JudgeError, which says what could not be."""
    case = case_of(judgement.answer, judgement.reference)
    judge = conf.judge(judgement.judge, JudgementMeter(judgement))
    jobs.held(judgement).update(judge_name=judge.name)
    metrics = judge.metrics(case)
    if not metrics:
        jobs.end(
            judgement,
            Judgement.Status.SKIPPED,
            error="There is nothing to judge: the answer refuses, without any source.",
        )
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
    jobs.end(judgement, Judgement.Status.FAILED if problems else Judgement.Status.DONE, error=" ".join(problems))


def _save(judgement: Judgement, metric: str, started: float, **values: Any) -> None:
    """Raises: ClaimLost; then nothing is written."""
    milliseconds = (time.perf_counter() - started) * 1000
    with transaction.atomic():
        if jobs.held(judgement).select_for_update().first() is None:
            raise ClaimLost(f"Judgement {judgement.pk} is no longer claimed by this worker.")
        Score.objects.update_or_create(
            judgement=judgement, metric=metric, defaults={**values, "milliseconds": round(milliseconds, 1)}
        )


def _postpone(judgement: Judgement, reason: str) -> None:
    """Plan another attempt, later each time; after JUDGE_ATTEMPTS leave the judgement to the admin."""
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 3 ** (judgement.attempts - 1))
    jobs.postpone(judgement, reason, pause, most_attempts=settings.JUDGE_ATTEMPTS)
