"""Measuring one run: claim its row, search every question, keep each result as it comes, and tell the truth about it.

A worker that dies stops beating and loses its claim; the results it had kept stay, and its successor asks the other
questions, unless something that a search depends on has changed since: then it begins again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evaluation import gates, jobs
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, EvaluationRun, QuestionResult
from evaluation.retrieval_runs import METRICS, TOP_K
from evaluation.runs.queue import MOST_ATTEMPTS, conditions, corpus_version
from evaluation.runs.results import FIELDS, summarise
from evaluation.sets.resolution import fingerprint, measured_questions, resolve
from evaluation.sets.scoring import Expectation, judged_ranking
from retrieval import conf
from retrieval.dense.active import active_embedder
from retrieval.exceptions import InvalidQuery
from retrieval.profiles import NamedProfile
from retrieval.ranking.plans import NO_RERANKER
from retrieval.ranking.profile import ImproperProfile, from_json
from retrieval.search import search
from retrieval.types import LegStatus, SearchFilters, SearchResult

logger = logging.getLogger(__name__)

PAUSE = timedelta(seconds=30)
QUOTE_CHARACTERS = 200


class _ClaimLost(Exception):
    """Another worker has the run, or it was cancelled."""


class _NotMeasured(EvaluationError):
    """The run cannot be measured; another attempt may do."""


class _Unmeasurable(EvaluationError):
    """The run cannot be measured, however often it is tried."""


@dataclass(frozen=True, slots=True)
class _Task:
    """What a run asks, and what it expects in the documents of this version."""

    run: EvaluationRun
    profile: NamedProfile
    filters: SearchFilters
    top_k: int
    questions: list[EvaluationQuestion]
    expectations: dict[int, Expectation]
    corpus_version: int


def measure(run_id: int) -> EvaluationRun | None:
    """The run, carried as far as it would go; None when there was nothing to claim, or the claim was lost.

    Whatever goes wrong is on the row afterwards, with the time of the next attempt unless that cannot help.
    """
    run = jobs.claim(run_id, EvaluationRun.objects.select_related("evaluation_set"), started_at=timezone.now())
    if run is None:
        return None
    try:
        with jobs.beating(run):
            _measure(run)
    except _ClaimLost:
        logger.info("Evaluation run %s is no longer this worker's.", run.pk)
        return None
    except _Unmeasurable as error:
        jobs.end(run, EvaluationRun.Status.FAILED, error=str(error))
    except EvaluationError as error:
        _postpone(run, str(error))
    except Exception as error:
        logger.exception("Evaluation run %s could not be measured.", run.pk)
        _postpone(run, f"{type(error).__name__}: {error}")
    run.refresh_from_db()
    if run.is_reliable:
        gates.examine(run)
    return run


def _measure(run: EvaluationRun) -> None:
    task = _task(run)
    _begin(run, task)
    asked = set(run.results.values_list("question", flat=True))
    left = [question for question in task.questions if question.pk not in asked]
    if left:
        _search(task, left[0])  # loads models and opens connections; not measured
    for question in left:
        started = time.perf_counter()
        found = _search(task, question)
        _keep(task, question, found, (time.perf_counter() - started) * 1000)
    distrust = ""
    if corpus_version(run.evaluation_set.collection_id) != run.corpus_version:
        distrust = "The documents changed while it ran: run it again."
    jobs.end(
        run,
        EvaluationRun.Status.DONE,
        distrust=distrust,
        summary=summarise(list(run.results.all())),
    )


def _task(run: EvaluationRun) -> _Task:
    """Raises: _Unmeasurable."""
    try:
        settings = from_json(run.settings)
    except ImproperProfile as error:
        raise _Unmeasurable(f"The settings of {run.profile_name} cannot be read: {error}") from error
    questions = measured_questions(run.evaluation_set)
    if not questions:
        raise _Unmeasurable("No question of the set has an expected passage: there is nothing to measure.")
    collection = run.evaluation_set.collection_id
    # Before the passages are looked up: a change in between is then seen at the end.
    version = corpus_version(collection)
    expected = [one for question in questions for one in question.expected_passages.all()]
    return _Task(
        run=run,
        profile=NamedProfile(run.profile_name, settings, run.profile_version_id),
        filters=SearchFilters(collections=(collection,)),
        # As deep as recall@50 looks, or as the profile can go: its own length of a result changes no rank above it.
        top_k=min(TOP_K, max(settings.depth, settings.candidate_multiplier * settings.top_k)),
        questions=questions,
        expectations=resolve(collection, expected),
        corpus_version=version,
    )


def _begin(run: EvaluationRun, task: _Task) -> None:
    """Write down what is about to be measured, and forget the results of an attempt that measured something else."""
    active_embedder()
    if task.profile.settings.reranker != NO_RERANKER:
        prepare = getattr(conf.reranker(task.profile.settings.reranker), "prepare", None)
        if prepare is not None:
            prepare()
    now = {
        "fingerprint": fingerprint(task.questions),
        "conditions": conditions(),
        "corpus_version": task.corpus_version,
    }
    with transaction.atomic():
        _lock(run)
        if any(getattr(run, name) != value for name, value in now.items()):
            run.results.all().delete()
        gone = sum(not one.is_resolved for one in task.expectations.values() if one.grade > 0)
        asked = run.results.count()
        jobs.held(run).update(**now, total=len(task.questions), asked=asked, unresolved=gone, error="")
    for name, value in now.items():
        setattr(run, name, value)


def _search(task: _Task, question: EvaluationQuestion) -> SearchResult:
    """Raises: _Unmeasurable for a question that nobody can search, _NotMeasured when a part of the search failed."""
    try:
        result = search(question.text, task.filters, profile=task.profile, top_k=task.top_k)
    except InvalidQuery as error:
        raise _Unmeasurable(f"The question {question.text!r} cannot be searched: {error}") from error
    trace = result.trace
    errors = [leg.error for leg in trace.legs]
    if trace.rerank is not None and trace.rerank.status is not LegStatus.OFF:
        errors.append(trace.rerank.error)
    if any(errors):
        told = "; ".join(filter(None, errors))
        raise _NotMeasured(f"The question {question.text!r} was not searched with all of the profile: {told}")
    return result


def _keep(task: _Task, question: EvaluationQuestion, found: SearchResult, milliseconds: float) -> None:
    """Save the question's result and the run's progress, unless the claim was lost."""
    passages = list(question.expected_passages.all())
    expectations = [task.expectations[one.pk] for one in passages]
    judged = judged_ranking([(hit.passage.chunk_id, hit.passage.document_id) for hit in found.hits], expectations)
    values = {FIELDS[name]: metric(judged.ranking, judged.grades) for name, metric in METRICS.items()}
    expected = [
        {
            "source": one.source,
            "quote": one.quote[:QUOTE_CHARACTERS],
            "grade": one.grade,
            "rank": judged.ranks[one.pk],
            "resolved": expectation.is_resolved,
        }
        for one, expectation in zip(passages, expectations, strict=True)
    ]
    with transaction.atomic():
        _lock(task.run)
        if not EvaluationQuestion.objects.filter(pk=question.pk).exists():
            # Deleted meanwhile: the set is another one now, and the next attempt sees it.
            raise _NotMeasured("A question was deleted while the set was measured.")
        QuestionResult.objects.create(
            run=task.run,
            question=question,
            text=question.text,
            expected=expected,
            milliseconds=round(milliseconds, 2),
            **values,
        )
        jobs.held(task.run).update(asked=F("asked") + 1, heartbeat_at=timezone.now())


def _lock(run: EvaluationRun) -> None:
    """Raises: _ClaimLost; then nothing is written."""
    if jobs.held(run).select_for_update().first() is None:
        raise _ClaimLost


def _postpone(run: EvaluationRun, reason: str) -> None:
    jobs.postpone(run, reason, PAUSE * run.attempts, most_attempts=MOST_ATTEMPTS)
