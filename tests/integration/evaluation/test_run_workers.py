"""A real worker: a run is measured by itself, and kill -9 neither loses nor doubles a question."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from evaluation.models import EvaluationQuestion, EvaluationRun, RunKind
from evaluation.runs import queue
from evaluation.runs.measures import results_of
from evaluation.sets.building import expect
from ragsite.celery import app
from retrieval.jobs.sweep import sweep
from retrieval.models import Chunk
from retrieval.search.profiles import NamedProfile
from tests.support.evaluation_sets import BY_MEANING, fill, set_of
from tests.support.site import database_url, start_worker, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]

MANY = 150


@pytest.fixture
def jobs() -> Iterator[None]:
    """The real queue, in the test database, empty."""
    previous = app.conf.broker_transport_options
    conninfo = make_conninfo(**conninfo_to_dict(database_url()))
    app.conf.broker_transport_options = {**previous, "conn_string": conninfo}
    app._pool = app.amqp._producer_pool = None
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pgmq.q_celery') IS NOT NULL")
        if cursor.fetchone()[0]:
            cursor.execute("SELECT pgmq.purge_queue('celery')")
    yield
    app.conf.broker_transport_options = previous
    app._pool = app.amqp._producer_pool = None


@pytest.mark.parametrize("kind", RunKind.values)
def test_a_killed_worker_loses_no_question_and_asks_none_twice(
    jobs, collection, ingest, tmp_path: Path, kind: str
) -> None:
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
    run = queue.request_run(evaluation_set, NamedProfile("meaning", BY_MEANING), kind=kind)
    results = results_of(run)
    worker = start_worker(tmp_path / "worker.log")
    try:
        wait_until(lambda: results.count() >= 5, 60, f"results\n{worker.log.read_text()[-3000:]}")
        worker.kill()
        interrupted = EvaluationRun.objects.get()
        kept = list(results.values_list("pk", flat=True))
        assert interrupted.status == "running"
        assert interrupted.asked == len(kept) < MANY
        assert sweep(EvaluationRun) == 0, "its heart beat a moment ago"
        long_ago = timezone.now() - timedelta(minutes=10)
        EvaluationRun.objects.update(heartbeat_at=long_ago, created_at=long_ago)
        assert sweep(EvaluationRun) == 1
        worker = start_worker(tmp_path / "worker2.log")
        wait_until(lambda: EvaluationRun.objects.get().is_finished, 90, f"the run\n{worker.log.read_text()[-3000:]}")
    finally:
        worker.stop()
    run.refresh_from_db()
    assert (run.status, run.asked, run.attempts, run.error, run.unreliable_reason) == ("done", MANY, 2, "", "")
    assert results.filter(pk__in=kept).count() == len(kept)
    assert results.values("question").distinct().count() == results.count() == MANY
