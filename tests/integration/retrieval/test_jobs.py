"""Leases, retries and the sweep, on a real database with several connections."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from chat.models import Answer, Conversation
from core import job_queue, jobs
from core.exceptions import LeaseLost
from core.jobs import acquire_lease
from ragsite.celery import app
from retrieval.models import Document, Draft
from tests.support.site import database_url, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timedelta(hours=1)


@pytest.fixture
def document(collection):
    return Document.objects.create(collection=collection, source="pump.md")


@pytest.fixture
def sent(monkeypatch):
    """Return the tasks that were sent, by name and id."""
    tasks = []
    monkeypatch.setattr(job_queue, "send_job", lambda task, pk: tasks.append((task, pk)))
    return tasks


@pytest.fixture
def other():
    """Yield the connection of another process."""
    with psycopg.connect(make_conninfo(**conninfo_to_dict(database_url()))) as opened:
        yield opened


def elsewhere(function):
    """Return ``function``, to be called in a thread with a connection of its own."""

    def call():
        try:
            return function()
        finally:
            connection.close()

    return ThreadPoolExecutor(1).submit(call)


def is_somebody_waiting():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def lease(document):
    return acquire_lease(Document.unfinished(), document.pk, status=Document.RUNNING)


def silence(document):
    Document.objects.filter(pk=document.pk).update(heartbeat_at=timezone.now() - 2 * Document.SILENT_AFTER)


def test_of_many_processes_one_gets_the_lease(document):
    barrier = threading.Barrier(6)

    def compete():
        barrier.wait(30)
        return acquire_lease(Document.unfinished(), document.pk, status=Document.RUNNING)

    outcomes = [future.result(60) for future in [elsewhere(compete) for _ in range(6)]]
    (leased,) = [outcome for outcome in outcomes if outcome is not None]
    document.refresh_from_db()
    assert (document.lease, document.attempts, document.status) == (leased.lease, 1, Document.RUNNING)


@pytest.mark.parametrize("outcome", ["commit", "rollback"])
def test_a_lease_that_another_process_is_taking_is_waited_for(document, other, outcome):
    other.execute(
        "UPDATE retrieval_document SET lease = %s, heartbeat_at = now(), status = 'processing' WHERE id = %s",
        [uuid.uuid4(), document.pk],
    )
    competing = elsewhere(lambda: acquire_lease(Document.unfinished(), document.pk, status=Document.RUNNING))
    wait_until(is_somebody_waiting, 30, "the second process")
    other.commit() if outcome == "commit" else other.rollback()
    assert (competing.result(30) is None) == (outcome == "commit")


def test_a_lease_holds_while_there_are_heartbeats_and_then_expires(document):
    first = lease(document)
    Document.objects.update(heartbeat_at=timezone.now() - 0.9 * Document.SILENT_AFTER)
    assert acquire_lease(Document.unfinished(), document.pk) is None
    assert first.filter_by_lease().update(heartbeat_at=Now()) == 1
    silence(document)
    second = lease(document)
    assert (second.attempts, second.lease != first.lease) == (2, True)


def test_a_process_believed_dead_cannot_write_over_its_successor(document):
    dead = lease(document)
    silence(document)
    successor = lease(document)
    with pytest.raises(LeaseLost, match=f"document {document.pk} is no longer leased"), transaction.atomic():
        dead.lock()
    assert not dead.write_under_lease(title="Of the dead")
    assert not dead.end(Document.FAILED, "Of the dead")
    assert not dead.postpone("Of the dead")
    assert dead.filter_by_lease().update(heartbeat_at=Now()) == 0
    assert successor.end(Document.Status.READY)
    document.refresh_from_db()
    assert (document.status, document.error, document.title, document.lease) == ("ready", "", "", None)


def test_a_result_that_is_being_saved_keeps_others_from_the_lease(document):
    leased = lease(document)
    silence(document)
    with transaction.atomic():
        row = leased.lock()
        competing = elsewhere(lambda: acquire_lease(Document.unfinished(), document.pk, status=Document.RUNNING))
        wait_until(is_somebody_waiting, 30, "the second process")
        row.end(Document.Status.READY)
    assert competing.result(30) is None
    document.refresh_from_db()
    assert (document.status, document.attempts) == ("ready", 1)


def test_what_a_killed_process_had_not_committed_is_gone_and_its_lease_stays(document, other):
    token = lease(document).lease
    other.execute("UPDATE retrieval_document SET status = 'ready', lease = NULL WHERE lease = %s", [token])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [other.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        other.commit()
    document.refresh_from_db()
    assert (document.status, document.lease) == (Document.RUNNING, token)
    other.close()


@pytest.fixture
def leased(collection, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.02)
    return Document.objects.create(
        collection=collection,
        source="pump.md",
        status=Document.Status.PROCESSING,
        lease=uuid.uuid4(),
        heartbeat_at=timezone.now() - LONG_AGO,
    )


def is_fresh(document):
    document.refresh_from_db()
    return document.heartbeat_at is not None and document.heartbeat_at > timezone.now() - timedelta(minutes=1)


def test_it_goes_on_until_the_work_ends(leased):
    with jobs.heartbeat(leased):
        for _attempt in range(3000):
            if is_fresh(leased):
                break
            threading.Event().wait(0.02)
    assert is_fresh(leased)
    assert not [thread for thread in threading.enumerate() if thread.name == f"heartbeat of document {leased.pk}"]


def test_a_database_that_is_away_for_a_moment_does_not_stop_it(leased, monkeypatch, caplog):
    update = QuerySet.update
    away = iter([True, True])
    stored = threading.Event()

    def failing_at_first(queryset, **values):
        if next(away, False):
            raise OperationalError("server closed the connection unexpectedly")
        done = update(queryset, **values)
        stored.set()
        return done

    monkeypatch.setattr(QuerySet, "update", failing_at_first)
    with jobs.heartbeat(leased):
        assert stored.wait(60), "It was never stored again."
    assert is_fresh(leased)
    assert caplog.text.count(f"The heartbeat of document {leased.pk} was not stored.") == 2


def test_a_lease_that_was_lost_is_not_kept_alive(leased):
    Document.objects.update(lease=uuid.uuid4())
    with jobs.heartbeat(leased):
        threading.Event().wait(0.3)
    assert not is_fresh(leased)


def test_each_pause_is_longer_and_the_last_attempt_ends_the_job(document):
    pauses = []
    for attempt in range(1, Document.MOST_ATTEMPTS + 1):
        lease(document).retry("It was away.")
        document.refresh_from_db()
        assert (document.attempts, document.lease, document.error) == (attempt, None, "It was away.")
        if document.retry_at is not None:
            pauses.append(round((document.retry_at - timezone.now()).total_seconds()))
    assert pauses == [10, 30, 90, 270]
    assert document.status == Document.FAILED
    assert acquire_lease(Document.unfinished(), document.pk) is None


def test_an_attempt_that_is_handed_back_does_not_count(document):
    lease(document).hand_back("The site is not ready.", timedelta(minutes=1))
    document.refresh_from_db()
    assert (document.status, document.attempts, document.lease) == (Document.WAITING, 0, None)
    assert not Document.objects.filter(jobs.build_retry_due_condition()).exists()
    assert Document.objects.filter(
        jobs.build_retry_due_condition(timezone.now() - document.retry_at - timedelta(seconds=1))
    ).exists()


def test_what_the_broker_does_not_take_is_enqueued_by_the_sweep(document, monkeypatch, sent):
    def refuse(task, pk):
        raise BrokerError("no broker")

    with monkeypatch.context() as patched:
        patched.setattr(job_queue, "send_job", refuse)
        assert job_queue.enqueue(Document, [document.pk]) == 0
    assert job_queue.enqueue_forgotten_jobs(Document) == 0, "its process may be about to enqueue it"
    Document.objects.update(created_at=timezone.now() - 2 * job_queue.SENT_WITHIN)
    assert job_queue.enqueue_forgotten_jobs(Document) == 1
    assert job_queue.enqueue_forgotten_jobs(Document) == 0, "it was just sent"
    Document.objects.update(enqueued_at=timezone.now() - 2 * job_queue.BEGUN_WITHIN)
    assert job_queue.enqueue_forgotten_jobs(Document) == 1
    assert sent == [("retrieval.tasks.ingest_document", document.pk)] * 2


@pytest.mark.parametrize("broker", ["memory", pytest.param("pgmq", marks=pytest.mark.worker)])
@pytest.mark.parametrize("taken", [0, 2, 5])
def test_only_what_the_broker_lost_is_enqueued_again(collection, request, broker, taken):
    if broker == "pgmq":
        request.getfixturevalue("queue")
    documents = [Document.objects.create(collection=collection, source=f"{n}.md").pk for n in range(5)]
    with app.connection_for_write() as link:
        channel = app.amqp.queues["documents"](link.default_channel)
        channel.declare()
        channel.purge()
        assert job_queue.enqueue(Document, documents) == 5
        for _ in range(taken):  # by a worker that died before it began
            channel.get(no_ack=True)
    Document.objects.update(enqueued_at=F("enqueued_at") - 2 * job_queue.BEGUN_WITHIN)
    assert job_queue.enqueue_forgotten_jobs(Document) == taken
    late = Document.objects.filter(enqueued_at__lt=timezone.now() - job_queue.BEGUN_WITHIN)
    assert sorted(late.values_list("pk", flat=True)) == documents[taken:], "those that were sent last are still there"
    assert job_queue.enqueue_forgotten_jobs(Document) == 0
    assert job_queue.count_queued("documents")[0] == 5


def test_a_broker_that_is_away_stops_the_sweep_of_no_other_kind(document, sent, monkeypatch, caplog):
    Document.objects.update(enqueued_at=timezone.now() - LONG_AGO)
    draft = Draft.objects.create(collection=document.collection)
    Draft.objects.update(created_at=timezone.now() - LONG_AGO)

    def refuse(queue):
        raise app.connection_for_write().connection_errors[0]("nobody there")

    monkeypatch.setattr(job_queue, "count_queued", refuse)
    job_queue.run_job_maintenance()
    assert sent == [(Draft.TASK, draft.pk)]
    assert "The jobs of Document were not swept." in caplog.text


def test_a_job_that_a_quick_worker_postponed_is_not_taken_for_enqueued(document, monkeypatch, sent):
    with monkeypatch.context() as patched:
        patched.setattr(job_queue, "send_job", lambda task, pk: lease(document).postpone("away"))
        job_queue.enqueue(Document, [document.pk])
    assert job_queue.enqueue_forgotten_jobs(Document) == 0, "it is not due"
    Document.objects.update(retry_at=timezone.now())
    assert job_queue.enqueue_forgotten_jobs(Document) == 1


def test_the_sweep_frees_what_is_silent_and_leaves_what_is_alive(collection, sent):
    dead, alive, ended = (Document.objects.create(collection=collection, source=f"{n}.md") for n in range(3))
    lease(dead)
    lease(alive)
    lease(ended).end(Document.Status.READY)
    silence(dead)
    silence(ended)
    assert job_queue.enqueue_forgotten_jobs(Document) == 1
    assert [pk for _, pk in sent] == [dead.pk]
    states = dict(Document.objects.values_list("pk", "status"))
    assert states == {dead.pk: "pending", alive.pk: "processing", ended.pk: "ready"}
    assert lease(dead).attempts == 2


def test_two_sweeps_at_once_free_a_job_once(document, sent):
    lease(document)
    silence(document)
    barrier = threading.Barrier(2)

    def run():
        barrier.wait(30)
        return job_queue.enqueue_forgotten_jobs(Document)

    sweeps = [elsewhere(run) for _ in range(2)]
    assert sum(future.result(30) for future in sweeps) >= 1
    document.refresh_from_db()
    assert (document.status, document.lease, document.attempts) == (Document.WAITING, None, 1)


def test_a_job_that_keeps_killing_its_workers_is_ended(document, sent):
    for _ in range(Document.MOST_ATTEMPTS):
        lease(document)
        silence(document)
        job_queue.enqueue_forgotten_jobs(Document)
    document.refresh_from_db()
    assert document.status == Document.FAILED
    assert "interrupted 5 times" in document.error
    assert len(sent) == Document.MOST_ATTEMPTS - 1


def test_the_sweep_does_not_wait_for_a_row_that_is_written(document, other):
    lease(document)
    silence(document)
    other.execute("SELECT 1 FROM retrieval_document WHERE id = %s FOR NO KEY UPDATE", [document.pk])
    assert elsewhere(lambda: job_queue.enqueue_forgotten_jobs(Document)).result(30) == 0
    document.refresh_from_db()
    assert document.status == Document.RUNNING


def test_one_sweep_asks_every_kind_and_one_that_fails_stops_no_other(document, sent, monkeypatch, caplog):
    Document.objects.update(created_at=timezone.now() - LONG_AGO)
    draft = Draft.objects.create(collection=document.collection)
    Draft.objects.update(created_at=timezone.now() - LONG_AGO)
    answer = Answer.objects.create(conversation=Conversation.objects.create(), question="How heavy?")
    Answer.objects.update(created_at=timezone.now() - LONG_AGO)
    job_queue.run_job_maintenance()
    assert sorted(sent) == [
        ("retrieval.tasks.ingest_document", document.pk),
        ("retrieval.tasks.resume_draft", draft.pk),
    ]
    answer.refresh_from_db()
    assert answer.status == Answer.Status.FAILED, "it was never begun"
    sent.clear()
    Draft.objects.update(enqueued_at=None)
    whole = job_queue.enqueue_forgotten_jobs

    def failing(model):
        if model is Document:
            raise OperationalError("server closed the connection unexpectedly")
        return whole(model)

    monkeypatch.setattr(job_queue, "enqueue_forgotten_jobs", failing)
    job_queue.run_job_maintenance()
    assert sent == [(Draft.TASK, draft.pk)]
    assert "The jobs of Document were not swept." in caplog.text
