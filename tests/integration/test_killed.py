"""kill -9 in the middle of the work: no row is lost, doubled, or left "running"."""

import json
import sys
from contextlib import contextmanager
from datetime import timedelta

import psutil
import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from chat.models import Answer
from chat.signals import answer_completed
from core.job_queue import enqueue_forgotten_jobs
from evaluation.models import EvaluationRun, Judgement
from evaluation.runs.queue import request_evaluation_run
from ragsite.processes import machine
from retrieval.documents import submission
from retrieval.documents.drafts import lifecycle
from retrieval.models import Chunk, ChunkEmbedding, Collection, CollectionStatistics, Document, Draft
from retrieval.search.profiles.profiles import NamedProfile
from tests.integration.test_processes import score
from tests.support.databases import RESTARTS
from tests.support.evaluation_sets import BY_MEANING, set_of
from tests.support.judged_answers import completed_answer
from tests.support.site import database_url, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]


def long_text(seed):
    return "\n\n".join(
        f"Paragraph {n} of document {seed} describes pump number {seed * 1000 + n}. " * 12 for n in range(35)
    ).encode()


def assert_whole(collection):
    """Assert that every document is read, once, and that the statistics match its chunks."""
    assert set(Document.objects.values_list("status", flat=True)) == {Document.Status.READY}
    for document in Document.objects.select_related("text"):
        chunks = list(document.chunks.all())
        assert document.chunk_count == len(chunks)
        assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
        assert all(chunk.content == document.text.text[chunk.start : chunk.end] for chunk in chunks)
    statistics = CollectionStatistics.objects.get(pk=collection.pk)
    assert statistics.chunks == Chunk.objects.count() == ChunkEmbedding.objects.count()


def test_a_killed_worker_loses_and_doubles_nothing(collection, queue, workers):
    for seed in range(3):
        # Long enough to be amid it still when its beginning has been seen.
        text = long_text(seed) * 3 if seed == 1 else f"Document {seed} describes a pump.".encode()
        submission.submit(collection, f"{seed}.txt", text)
    worker = workers.running()
    half_read = Document.objects.filter(source="1.txt", status="processing", progress_percent__gt=0)
    wait_until(half_read.exists, 60, "a half-read file")
    worker.kill()
    assert not Document.objects.get(status="processing").chunks.exists()
    # Time passes, before another worker's heart beats: the schedule finds the document whose worker is silent.
    Document.objects.filter(status="processing").update(heartbeat_at=timezone.now() - 2 * Document.SILENT_AFTER)
    assert enqueue_forgotten_jobs(Document) >= 1
    workers.running()
    wait_until(lambda: Document.objects.filter(status="ready").count() == 3, 120, "all documents")
    assert_whole(collection)
    # Evaluation's tasks reach the workers, too.
    answer_completed.send(Answer, answer=completed_answer())
    questions = {"What does document 0 describe?": "0.txt"}
    request_evaluation_run(set_of(collection, questions=questions), NamedProfile("meaning", BY_MEANING))
    wait_until(lambda: Judgement.objects.get().status == "done", 90, f"the judgement\n{workers.log()}")
    wait_until(lambda: EvaluationRun.objects.get().status == "done", 90, f"the run\n{workers.log()}")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes by such a score")
def test_a_workers_child_goes_before_the_database_and_is_replaced(queue, workers):
    main = psutil.Process(workers.running().popen.pid)
    wait_until(main.children, 60, "the worker's child")
    (child,) = main.children()
    wait_until(lambda: score(child.pid) == machine.WORK_SCORE, 60, "the child's score")
    assert score(settings.EMBEDDED_POSTGRES._read_postmaster_pid()) < machine.WORK_SCORE
    # The kernel kills it so when memory runs out.
    child.kill()
    wait_until(lambda: [one.pid for one in main.children()] not in ([], [child.pid]), 60, "another child")
    assert settings.EMBEDDED_POSTGRES.is_running()


def test_a_killed_database_loses_and_doubles_nothing(collection, queue, workers):
    workers.running()
    submission.submit(collection, "long.txt", long_text(1))
    wait_until(
        lambda: Document.objects.filter(status="processing", progress_percent__gt=0).exists(), 60, "a half-read file"
    )
    connection.close()
    psutil.Process(settings.EMBEDDED_POSTGRES._read_postmaster_pid()).kill()
    wait_until(lambda: not settings.EMBEDDED_POSTGRES.is_running(), 60)
    settings.EMBEDDED_POSTGRES.ensure_running()
    RESTARTS.append("killed")

    def is_ready():
        Document.objects.filter(status="processing", heartbeat_at__lt=timezone.now() - timedelta(seconds=8)).update(
            heartbeat_at=timezone.now() - 2 * Document.SILENT_AFTER
        )
        Document.objects.filter(status="pending").update(retry_at=timezone.now() - timedelta(seconds=1))
        enqueue_forgotten_jobs(Document)
        return Document.objects.get().status == Document.Status.READY

    wait_until(is_ready, 90, f"the document\n{workers.log()}")
    assert_whole(collection)


@contextmanager
def held_lexeme(collection, lexeme):
    """Lock a word's count, so that writers of passages stop halfway; yield a function that says whether one waits."""
    with psycopg.connect(make_conninfo(**conninfo_to_dict(database_url()))) as holder:
        holder.execute(
            "SELECT 1 FROM retrieval_lexeme WHERE collection_id = %s AND lexeme = %s FOR UPDATE",
            [collection.pk, lexeme],
        )

        def waits():
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
                return bool(cursor.fetchone()[0])

        yield waits


def test_a_worker_killed_amid_a_publication_publishes_nothing(collection, ingest, queue, workers):
    ingest(collection, "pump.md", "# Pump\n\nThe pump weighs 3450 grams.")
    ingest(collection, "valve.md", "# Valve\n\nThe valve closes at ten bar.")
    worker = workers.running()
    draft = lifecycle.begin_draft(collection)
    wait_until(lambda: Draft.objects.get().status == Draft.Status.OPEN, 30, "the working copy")
    working_copy = Collection.objects.get(draft=draft)
    working_copy.documents.get(source="valve.md").delete()
    submission.submit(working_copy, "fan.md", b"# Fan\n\nThe fan cools the pump.")
    wait_until(lambda: not working_copy.documents.exclude(status="ready").exists(), 30, "the new document")
    with held_lexeme(collection, "pump") as somebody_waits:
        lifecycle.publish_draft(draft)
        wait_until(somebody_waits, 30, "a publication under way")
        worker.kill()
    assert Draft.objects.get().status == Draft.Status.PUBLISHING
    assert set(collection.documents.values_list("source", flat=True)) == {"pump.md", "valve.md"}
    assert enqueue_forgotten_jobs(Draft) == 0, "its heart beat a moment ago"
    Draft.objects.update(heartbeat_at=timezone.now() - 2 * Draft.SILENT_AFTER)
    assert enqueue_forgotten_jobs(Draft) == 1
    workers.running()
    wait_until(lambda: not Collection.objects.filter(draft=draft).exists(), 60, f"the publication\n{workers.log()}")
    assert Draft.objects.get().status == Draft.Status.PUBLISHED
    assert set(collection.documents.values_list("source", flat=True)) == {"pump.md", "fan.md"}
    assert_whole(collection)


def events_of(response):
    """(id, name, payload) of each server-sent event."""
    event_id = name = ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            event_id = line[4:]
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield event_id, name, json.loads(line[6:])
