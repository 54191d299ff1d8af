"""Judging one answer: lease its row, measure, store each score as it comes, and the reason where there is none.

A worker that dies loses its lease; what it had measured stays, and its successor measures the rest. An error is stored
as an error, tried again later each time, and never turned into a number.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import transaction

from evaluation import conf
from evaluation.judgements.budget import JobMeter
from evaluation.judges.cases import case_of
from evaluation.judges.exceptions import JudgeBudgetSpent, JudgeError, NotMeasurable, UnusableJudgement
from evaluation.models import Judgement, Score
from retrieval.exceptions import LeaseLost
from retrieval.jobs.heartbeat import heartbeat
from retrieval.jobs.job import is_due
from retrieval.jobs.lease import acquire

logger = logging.getLogger(__name__)


def judge(judgement_id: int) -> Judgement | None:
    """The judgement, taken as far as it goes; None when there was nothing to lease, or the lease was lost.

    Whatever goes wrong is on the row afterwards, with the time of the next attempt unless that cannot help.
    """
    waiting = Judgement.unfinished().filter(is_due()).select_related("answer")
    judgement = acquire(waiting, judgement_id, status=Judgement.RUNNING)
    if judgement is None:
        return None
    try:
        with heartbeat(judgement):
            _measure(judgement)
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except JudgeBudgetSpent as error:
        judgement.end(Judgement.Status.SKIPPED, str(error))
    except JudgeError as error:
        judgement.retry(str(error))
    except Exception as error:
        logger.exception("Answer %s could not be judged.", judgement.answer_id)
        judgement.retry(f"{type(error).__name__}: {error}")
    judgement.refresh_from_db()
    return judgement


def _measure(judgement: Judgement) -> None:
    """Measure what has not been measured yet. Raises: JudgeError, which says what could not be."""
    case = case_of(judgement.answer, judgement.reference)
    judge = conf.judge(judgement.judge, JobMeter(judgement))
    judgement.write(judge_name=judge.name)
    metrics = judge.metrics(case)
    if not metrics:
        judgement.end(Judgement.Status.SKIPPED, "There is nothing to judge: the answer refuses, without any source.")
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
        except JudgeBudgetSpent:
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
    judgement.end(Judgement.Status.FAILED if problems else Judgement.Status.DONE, " ".join(problems))


def _save(judgement: Judgement, metric: str, started: float, **values: Any) -> None:
    """Raises: LeaseLost; then nothing is written."""
    milliseconds = (time.perf_counter() - started) * 1000
    with transaction.atomic():
        judgement.lock()
        Score.objects.update_or_create(
            judgement=judgement, metric=metric, defaults={**values, "milliseconds": round(milliseconds, 1)}
        )
