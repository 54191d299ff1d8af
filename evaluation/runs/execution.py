"""The way of a run: claim its row, ask every question, keep each result as it comes, and tell the truth about it.

A worker that dies stops beating and loses its claim; the results it had kept stay, and its successor asks the other
questions, unless something that the results depend on has changed since: then it begins again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evaluation import gates, jobs
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, EvaluationRun, RunKind
from evaluation.runs.answering import AnswerMeasurement
from evaluation.runs.measurement import ClaimLost, Measurement, NotMeasured, RunInput, Unmeasurable, prepare_reranker
from evaluation.runs.measures import NOTHING_TO_MEASURE, Result, results_of
from evaluation.runs.queue import MOST_ATTEMPTS, conditions, corpus_version, enqueue
from evaluation.runs.results import summarise
from evaluation.runs.searching import SearchMeasurement
from evaluation.sets.resolution import fingerprint, measured_questions
from retrieval.dense.active import active_embedder
from retrieval.ranking.profile import ImproperProfile, from_json
from retrieval.search.profiles import NamedProfile
from retrieval.types import SearchFilters

logger = logging.getLogger(__name__)

PAUSE = timedelta(seconds=30)
# A worker's task is ended after CELERY_TASK_TIME_LIMIT; before, the run is left, between two questions, to the next.
LONGEST_STINT_SECONDS = 10 * 60.0
_KINDS: Mapping[str, Callable[[RunInput], Measurement]] = {
    RunKind.SEARCH: SearchMeasurement,
    RunKind.ANSWERS: AnswerMeasurement,
}

# How many questions were asked, of how many.
Report = Callable[[int, int], None]


class _StintOver(Exception):
    """The rest is for the next worker."""


def measure(run_id: int, report: Report | None = None) -> EvaluationRun | None:
    """The run, carried as far as it would go; None when there was nothing to claim, or the claim was lost.

    Whatever goes wrong is on the row afterwards, with the time of the next attempt unless that cannot help.
    """
    run = jobs.claim(run_id, EvaluationRun.objects.select_related("evaluation_set", "draft"), started_at=timezone.now())
    if run is None:
        return None
    try:
        with jobs.beating(run):
            _measure(run, report)
    except ClaimLost:
        logger.info("Evaluation run %s is no longer this worker's.", run.pk)
        return None
    except _StintOver:
        _hand_on(run)
    except Unmeasurable as error:
        jobs.end(run, EvaluationRun.Status.FAILED, error=str(error))
    except EvaluationError as error:
        _postpone(run, str(error))
    except Exception as error:
        logger.exception("Evaluation run %s could not be measured.", run.pk)
        _postpone(run, f"{type(error).__name__}: {error}")
    run.refresh_from_db()
    return run


def _measure(run: EvaluationRun, report: Report | None) -> None:
    task = _task(run)
    # Before the passages are looked up: a change in between is then seen at the end.
    version = corpus_version(task.collection_id)
    measurement = _KINDS[run.kind](task)
    _begin(task, measurement, version)
    asked = set(results_of(run).values_list("question", flat=True))
    left = [question for question in task.questions if question.pk not in asked]
    if left:
        measurement.warm_up(left[0])
    began = time.monotonic()
    for number, question in enumerate(left, start=len(task.questions) - len(left)):
        if time.monotonic() - began > LONGEST_STINT_SECONDS:
            raise _StintOver
        if report is not None:
            report(number, len(task.questions))
        _keep(run, measurement.ask(question))
    results = list(results_of(run))
    unreliable_reason = measurement.reason_not_to_trust(results)
    if corpus_version(task.collection_id) != version:
        unreliable_reason = "The documents changed while it ran: run it again."
    elif conditions(run.kind) != run.conditions:
        unreliable_reason = (
            "The embedder, the generator or the switch for hybrid search changed while it ran: run it again."
        )
    with transaction.atomic():
        jobs.end(
            run, EvaluationRun.Status.DONE, unreliable_reason=unreliable_reason, summary=summarise(run.kind, results)
        )
        # In one with the end: a worker that dies in between would leave a loss that nobody is told of.
        ended = EvaluationRun.objects.get(pk=run.pk)
        if ended.is_reliable:
            gates.examine(ended)


def _task(run: EvaluationRun) -> RunInput:
    """Raises: Unmeasurable."""
    try:
        settings = from_json(run.settings)
    except ImproperProfile as error:
        raise Unmeasurable(f"The settings of {run.profile_name} cannot be read: {error}") from error
    collection = run.collection_id
    if collection is None or (run.draft is not None and not run.draft.is_open):
        raise Unmeasurable(f"The documents of {run.draft} cannot be asked any more: it has ended.")
    questions = measured_questions(run.evaluation_set, run.kind)
    if not questions:
        raise Unmeasurable(str(NOTHING_TO_MEASURE[run.kind]))
    return RunInput(
        run=run,
        profile=NamedProfile(run.profile_name, settings, run.profile_version_id),
        collection_id=collection,
        filters=SearchFilters(collections=(collection,)),
        questions=questions,
    )


def _begin(task: RunInput, measurement: Measurement, version: int) -> None:
    """Write down what is about to be measured, and forget the results of an attempt that measured something else."""
    active_embedder()
    prepare_reranker(task.profile.settings.reranker)
    run = task.run
    now = {
        "fingerprint": fingerprint(task.questions, run.kind),
        "conditions": conditions(run.kind),
        "corpus_version": version,
    }
    with transaction.atomic():
        _lock(run)
        if any(getattr(run, name) != value for name, value in now.items()):
            results_of(run).delete()
        asked = results_of(run).count()
        total, unresolved = len(task.questions), measurement.unresolved
        jobs.held(run).update(**now, total=total, asked=asked, unresolved=unresolved, error="")
    for name, value in now.items():
        setattr(run, name, value)


def _keep(run: EvaluationRun, result: Result) -> None:
    """Save the question's result and the run's progress, unless the claim was lost."""
    with transaction.atomic():
        _lock(run)
        if result.question_id is None or not EvaluationQuestion.objects.filter(pk=result.question_id).exists():
            # Deleted meanwhile: the set is another one now, and the next attempt sees it.
            raise NotMeasured("A question was deleted while the set was measured.")
        result.save(force_insert=True)
        jobs.held(run).update(asked=F("asked") + 1, heartbeat_at=timezone.now())


def _lock(run: EvaluationRun) -> None:
    """Raises: ClaimLost; then nothing is written."""
    if jobs.held(run).select_for_update().first() is None:
        raise ClaimLost


def _hand_on(run: EvaluationRun) -> None:
    """Leave the run to the next worker. It is no failed attempt."""
    jobs.held(run).update(
        status=EvaluationRun.Status.QUEUED, claim=None, attempts=F("attempts") - 1, enqueued_at=None, heartbeat_at=None
    )
    enqueue([run.pk])


def _postpone(run: EvaluationRun, reason: str) -> None:
    jobs.postpone(run, reason, PAUSE * run.attempts, most_attempts=MOST_ATTEMPTS)
