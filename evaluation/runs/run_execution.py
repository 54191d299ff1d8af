"""Measure a run: lock it for this worker, ask every question, and save each result before the next question.

After a crash, the next worker continues.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from core.exceptions import LeaseLost
from core.job_queue import enqueue
from core.jobs import acquire_lease, build_retry_due_condition, heartbeat
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, EvaluationRun, RunKind
from evaluation.runs.measurement import (
    AnswerMeasurement,
    MeasurementFailed,
    RunInput,
    SearchMeasurement,
    UnmeasurableRun,
    prepare_reranker,
)
from evaluation.runs.queue import corpus_version, describe_run_conditions
from evaluation.runs.results import NOTHING_TO_MEASURE, Result, list_results, summarise_results
from evaluation.sets.resolution import hash_questions, list_measured_questions
from retrieval.index.active_embedder import active_embedder
from retrieval.profile_settings import ImproperProfile, from_json
from retrieval.search.profiles.profiles import NamedProfile
from retrieval.types import SearchFilters

logger = logging.getLogger(__name__)

# After this time a worker stops, before CELERY_TASK_TIME_LIMIT ends it, and another one continues.
LONGEST_STINT_SECONDS = 10 * 60.0
Measurement = SearchMeasurement | AnswerMeasurement

Report = Callable[[int, int], None]


class _RunTimeExceeded(Exception):
    """An error: the worker's time for the run is over. The next worker asks the remaining questions."""


def measure_run(run_id: int, report: Report | None = None) -> EvaluationRun | None:
    """Continue the run for a limited time and return it; None if another worker is measuring it.

    An error is stored, with the time of the next attempt if it may succeed.
    """
    waiting = (
        EvaluationRun.unfinished()
        .filter(build_retry_due_condition())
        .select_related("evaluation_set", "draft", "instructions")
    )
    run = acquire_lease(waiting, run_id, status=EvaluationRun.RUNNING, started_at=timezone.now())
    if run is None:
        return None
    try:
        with heartbeat(run):
            _measure_open_questions(run, report)
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except _RunTimeExceeded:
        run.hand_back("", timedelta())
        enqueue(EvaluationRun, [run.pk])
    except UnmeasurableRun as error:
        run.end(EvaluationRun.FAILED, str(error))
    except EvaluationError as error:
        run.retry(str(error))
    except Exception as error:
        logger.exception("Evaluation run %s could not be measured.", run.pk)
        run.retry(f"{type(error).__name__}: {error}")
    run.refresh_from_db()
    return run


def _measure_open_questions(run: EvaluationRun, report: Report | None) -> None:
    task = _build_run_input(run)
    # If the documents change from here on, the comparison of versions at the end shows it.
    version = corpus_version(task.collection_id)
    measurement: Measurement = SearchMeasurement(task) if run.kind == RunKind.SEARCH else AnswerMeasurement(task)
    _begin_measurement(task, measurement, version)
    asked = set(list_results(run).values_list("question", flat=True))
    left = [question for question in task.questions if question.pk not in asked]
    if left:
        measurement.warm_up(left[0])
    began = time.monotonic()
    for number, question in enumerate(left, start=len(task.questions) - len(left)):
        if time.monotonic() - began > LONGEST_STINT_SECONDS:
            raise _RunTimeExceeded
        if report is not None:
            report(number, len(task.questions))
        _save_result(run, measurement.ask(question))
    results = list(list_results(run))
    unreliable_reason = measurement.find_unreliable_reason(results)
    if corpus_version(task.collection_id) != version:
        unreliable_reason = "The documents changed while it ran: run it again."
    elif describe_run_conditions(run.kind) != run.conditions:
        unreliable_reason = (
            "The embedder, the generator or the switch for hybrid search changed while it ran: run it again."
        )
    run.end(
        EvaluationRun.Status.DONE, unreliable_reason=unreliable_reason, summary=summarise_results(run.kind, results)
    )


def _build_run_input(run: EvaluationRun) -> RunInput:
    try:
        settings = from_json(run.settings)
    except ImproperProfile as error:
        raise UnmeasurableRun(f"The settings of {run.profile_name} cannot be read: {error}") from error
    collection = run.collection_id
    if collection is None or (run.draft is not None and not run.draft.is_open):
        raise UnmeasurableRun(f"The documents of {run.draft} cannot be asked any more: it has ended.")
    questions = list_measured_questions(run.evaluation_set, run.kind)
    if not questions:
        raise UnmeasurableRun(str(NOTHING_TO_MEASURE[run.kind]))
    return RunInput(
        run=run,
        profile=NamedProfile(run.profile_name, settings, run.profile_version_id),
        collection_id=collection,
        # Only users who may read the whole collection see the results.
        filters=SearchFilters(collections=(collection,), readers=()),
        questions=questions,
    )


def _begin_measurement(task: RunInput, measurement: Measurement, version: int) -> None:
    active_embedder()
    prepare_reranker(task.profile.settings.reranker)
    run = task.run
    now = {
        "fingerprint": hash_questions(task.questions, run.kind),
        "conditions": describe_run_conditions(run.kind),
        "corpus_version": version,
    }
    with transaction.atomic():
        run.lock()
        if any(getattr(run, name) != value for name, value in now.items()):
            list_results(run).delete()
        asked = list_results(run).count()
        total, unresolved = len(task.questions), measurement.unresolved
        run.write_under_lease(**now, total=total, asked=asked, unresolved=unresolved, error="")
    for name, value in now.items():
        setattr(run, name, value)


def _save_result(run: EvaluationRun, result: Result) -> None:
    with transaction.atomic():
        run.lock()
        if result.question_id is None or not EvaluationQuestion.objects.filter(pk=result.question_id).exists():
            raise MeasurementFailed("A question was deleted while the set was measured.")
        result.save(force_insert=True)
        run.write_under_lease(asked=F("asked") + 1, heartbeat_at=Now())
