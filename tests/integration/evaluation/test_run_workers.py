"""A real worker: a run is measured by itself, and kill -9 neither loses nor doubles a question."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evaluation.models import EvaluationQuestion, EvaluationRun, RunKind
from evaluation.runs.queue import request_run
from evaluation.runs.results import results_of
from evaluation.sets.building import expect
from retrieval.infrastructure.jobs import sweep
from retrieval.models import Chunk
from retrieval.search.profiles import NamedProfile
from tests.support.evaluation_sets import BY_MEANING, fill, set_of
from tests.support.site import Workers, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]

MANY = 40


def test_a_killed_worker_loses_no_question_and_asks_none_twice(queue, workers: Workers, collection, ingest) -> None:
    fill(collection, ingest)
    evaluation_set = set_of(collection, questions={})
    chunk = Chunk.objects.filter(document__source="pump.md").get()
    for number in range(MANY):
        question = EvaluationQuestion.objects.create(
            evaluation_set=evaluation_set,
            text=f"How many grams does circulation pump number {number} weigh?",
            expected_answer="3450 grams",
        )
        expect(question, chunk)
    run = request_run(evaluation_set, NamedProfile("meaning", BY_MEANING), kind=RunKind.ANSWERS)
    results = results_of(run)
    worker = workers.running()
    wait_until(lambda: results.count() >= 5, 60, f"results\n{workers.log()}")
    worker.kill()
    interrupted = EvaluationRun.objects.get()
    kept = list(results.values_list("pk", flat=True))
    assert interrupted.status == "running"
    assert interrupted.asked == len(kept) < MANY
    assert sweep(EvaluationRun) == 0, "its heart beat a moment ago"
    long_ago = timezone.now() - timedelta(minutes=10)
    EvaluationRun.objects.update(heartbeat_at=long_ago, created_at=long_ago)
    assert sweep(EvaluationRun) == 1
    workers.running()
    wait_until(lambda: EvaluationRun.objects.get().is_finished, 90, f"the run\n{workers.log()}")
    run.refresh_from_db()
    assert (run.status, run.asked, run.attempts, run.error, run.unreliable_reason) == ("done", MANY, 2, "", "")
    assert results.filter(pk__in=kept).count() == len(kept)
    assert results.values("question").distinct().count() == results.count() == MANY
