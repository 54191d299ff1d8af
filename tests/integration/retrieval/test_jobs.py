"""Leases, retries and the sweep, on a real database with several connections."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import TypeVar

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from chat.models import Answer, Conversation
from retrieval.exceptions import LeaseLost
from retrieval.infrastructure import jobs
from retrieval.infrastructure.jobs import acquire_lease
from retrieval.models import Collection, Document, Draft
from tests.support.site import database_url, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")
LONG_AGO = timedelta(hours=1)


@pytest.fixture
def document(collection: Collection) -> Document:
    return Document.objects.create(collection=collection, source="pump.md")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The tasks that were sent, by name and id."""
    tasks: list[tuple[str, int]] = []
    monkeypatch.setattr(jobs, "send", lambda task, pk: tasks.append((task, pk)))
    return tasks


@pytest.fixture
def other() -> Iterator[psycopg.Connection]:
    """The connection of another process."""
    with psycopg.connect(make_conninfo(**conninfo_to_dict(database_url()))) as opened:
        yield opened


def elsewhere(function: Callable[[], T]) -> Future[T]:
    """``function``, called in a thread with a connection of its own."""

    def call() -> T:
        try:
            return function()
        finally:
            connection.close()

    return ThreadPoolExecutor(1).submit(call)


def is_somebody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def lease(document: Document) -> Document:
    leased = acquire_lease(Document.unfinished(), document.pk, status=Document.RUNNING)
    assert leased is not None
    return leased


def silence(document: Document) -> None:
    Document.objects.filter(pk=document.pk).update(heartbeat_at=timezone.now() - 2 * Document.SILENT_AFTER)


# Lease ---------------------------------------------------------------------------------------------------------------


def test_of_many_processes_one_gets_the_lease(document: Document) -> None:
    barrier = threading.Barrier(6)

    def compete() -> Document | None:
        barrier.wait(30)
        return acquire_lease(Document.unfinished(), document.pk, status=Document.RUNNING)

    outcomes = [future.result(60) for future in [elsewhere(compete) for _ in range(6)]]
    (leased,) = [outcome for outcome in outcomes if outcome is not None]
    document.refresh_from_db()
    assert (document.lease, document.attempts, document.status) == (leased.lease, 1, Document.RUNNING)


@pytest.mark.parametrize("outcome", ["commit", "rollback"])
def test_a_lease_that_another_process_is_taking_is_waited_for(
    document: Document, other: psycopg.Connection, outcome: str
) -> None:
    other.execute(
        "UPDATE retrieval_document SET lease = %s, heartbeat_at = now(), status = 'processing' WHERE id = %s",
        [uuid.uuid4(), document.pk],
    )
    competing = elsewhere(lambda: acquire_lease(Document.unfinished(), document.pk, status=Document.RUNNING))
    wait_until(is_somebody_waiting, 30, "the second process")
    other.commit() if outcome == "commit" else other.rollback()
    assert (competing.result(30) is None) == (outcome == "commit")


def test_a_lease_holds_while_there_are_heartbeats_and_then_expires(document: Document) -> None:
    first = lease(document)
    Document.objects.update(heartbeat_at=timezone.now() - 0.9 * Document.SILENT_AFTER)
    assert acquire_lease(Document.unfinished(), document.pk) is None
    assert first.held().update(heartbeat_at=Now()) == 1
    silence(document)
    second = lease(document)
    assert (second.attempts, second.lease != first.lease) == (2, True)


def test_a_process_believed_dead_cannot_write_over_its_successor(document: Document) -> None:
    dead = lease(document)
    silence(document)
    successor = lease(document)
    with pytest.raises(LeaseLost, match=f"document {document.pk} is no longer leased"), transaction.atomic():
        dead.lock()
    assert not dead.write(title="Of the dead")
    assert not dead.end(Document.FAILED, "Of the dead")
    assert not dead.postpone("Of the dead")
    assert dead.held().update(heartbeat_at=Now()) == 0
    assert successor.end(Document.Status.READY)
    document.refresh_from_db()
    assert (document.status, document.error, document.title, document.lease) == ("ready", "", "", None)


def test_a_result_that_is_being_saved_keeps_others_from_the_lease(document: Document) -> None:
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


def test_what_a_killed_process_had_not_committed_is_gone_and_its_lease_stays(
    document: Document, other: psycopg.Connection
) -> None:
    token = lease(document).lease
    other.execute("UPDATE retrieval_document SET status = 'ready', lease = NULL WHERE lease = %s", [token])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [other.info.backend_pid])
    with pytest.raises(psycopg.OperationalError):
        other.commit()
    document.refresh_from_db()
    assert (document.status, document.lease) == (Document.RUNNING, token)
    other.close()


# Heartbeat ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def leased(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> Document:
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.02)
    return Document.objects.create(
        collection=collection,
        source="pump.md",
        status=Document.Status.PROCESSING,
        lease=uuid.uuid4(),
        heartbeat_at=timezone.now() - LONG_AGO,
    )


def is_fresh(document: Document) -> bool:
    document.refresh_from_db()
    return document.heartbeat_at is not None and document.heartbeat_at > timezone.now() - timedelta(minutes=1)


def test_it_goes_on_until_the_work_ends(leased: Document) -> None:
    with jobs.heartbeat(leased):
        for _attempt in range(3000):
            if is_fresh(leased):
                break
            threading.Event().wait(0.02)
    assert is_fresh(leased)
    assert not [thread for thread in threading.enumerate() if thread.name == f"heartbeat of document {leased.pk}"]


def test_a_database_that_is_away_for_a_moment_does_not_stop_it(
    leased: Document, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    update = QuerySet.update
    away = iter([True, True])
    stored = threading.Event()

    def failing_at_first(queryset: QuerySet[Document], **values: object) -> int:
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


def test_a_lease_that_was_lost_is_not_kept_alive(leased: Document) -> None:
    Document.objects.update(lease=uuid.uuid4())
    with jobs.heartbeat(leased):
        threading.Event().wait(0.3)
    assert not is_fresh(leased)


# Retry ---------------------------------------------------------------------------------------------------------------


def test_each_pause_is_longer_and_the_last_attempt_ends_the_job(document: Document) -> None:
    pauses = []
    for attempt in range(1, Document.MOST_ATTEMPTS + 1):
        leased = lease(document)
        leased.retry("It was away.")
        document.refresh_from_db()
        assert (document.attempts, document.lease, document.error) == (attempt, None, "It was away.")
        if document.retry_at is not None:
            pauses.append(round((document.retry_at - timezone.now()).total_seconds()))
    assert pauses == [10, 30, 90, 270]
    assert document.status == Document.FAILED
    assert acquire_lease(Document.unfinished(), document.pk) is None


def test_an_attempt_that_is_handed_back_does_not_count(document: Document) -> None:
    lease(document).hand_back("The site is not ready.", timedelta(minutes=1))
    document.refresh_from_db()
    assert (document.status, document.attempts, document.lease) == (Document.WAITING, 0, None)
    assert document.retry_at is not None
    assert not Document.objects.filter(jobs.is_due()).exists()
    assert Document.objects.filter(jobs.is_due(timezone.now() - document.retry_at - timedelta(seconds=1))).exists()


# Enqueue and sweep ---------------------------------------------------------------------------------------------------


def test_what_the_broker_does_not_take_is_enqueued_by_the_sweep(
    document: Document, monkeypatch: pytest.MonkeyPatch, sent: list[tuple[str, int]]
) -> None:
    def refuse(task: str, pk: int) -> None:
        raise BrokerError("no broker")

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "send", refuse)
        assert jobs.enqueue(Document, [document.pk]) == 0
    assert jobs.sweep(Document) == 0, "its process may be about to enqueue it"
    Document.objects.update(created_at=timezone.now() - 2 * jobs.SENT_WITHIN)
    assert jobs.sweep(Document) == 1
    assert jobs.sweep(Document) == 0, "it was just sent"
    Document.objects.update(enqueued_at=timezone.now() - 2 * jobs.BEGUN_WITHIN)
    assert jobs.sweep(Document) == 1
    assert sent == [("retrieval.tasks.ingest_document", document.pk)] * 2


def test_a_job_that_a_quick_worker_postponed_is_not_taken_for_enqueued(
    document: Document, monkeypatch: pytest.MonkeyPatch, sent: list[tuple[str, int]]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "send", lambda task, pk: lease(document).postpone("away"))
        jobs.enqueue(Document, [document.pk])
    assert jobs.sweep(Document) == 0, "it is not due"
    Document.objects.update(retry_at=timezone.now())
    assert jobs.sweep(Document) == 1


def test_the_sweep_frees_what_is_silent_and_leaves_what_is_alive(
    collection: Collection, sent: list[tuple[str, int]]
) -> None:
    dead, alive, ended = (Document.objects.create(collection=collection, source=f"{n}.md") for n in range(3))
    lease(dead)
    lease(alive)
    lease(ended).end(Document.Status.READY)
    silence(dead)
    silence(ended)
    assert jobs.sweep(Document) == 1
    assert [pk for _, pk in sent] == [dead.pk]
    states = dict(Document.objects.values_list("pk", "status"))
    assert states == {dead.pk: "pending", alive.pk: "processing", ended.pk: "ready"}
    assert lease(dead).attempts == 2


def test_two_sweeps_at_once_free_a_job_once(document: Document, sent: list[tuple[str, int]]) -> None:
    lease(document)
    silence(document)
    barrier = threading.Barrier(2)

    def run() -> int:
        barrier.wait(30)
        return jobs.sweep(Document)

    sweeps = [elsewhere(run) for _ in range(2)]
    assert sum(future.result(30) for future in sweeps) >= 1
    document.refresh_from_db()
    assert (document.status, document.lease, document.attempts) == (Document.WAITING, None, 1)


def test_a_job_that_keeps_killing_its_workers_is_ended(document: Document, sent: list[tuple[str, int]]) -> None:
    for _ in range(Document.MOST_ATTEMPTS):
        lease(document)
        silence(document)
        jobs.sweep(Document)
    document.refresh_from_db()
    assert document.status == Document.FAILED
    assert "interrupted 5 times" in document.error
    assert len(sent) == Document.MOST_ATTEMPTS - 1


def test_the_sweep_does_not_wait_for_a_row_that_is_written(document: Document, other: psycopg.Connection) -> None:
    lease(document)
    silence(document)
    other.execute("SELECT 1 FROM retrieval_document WHERE id = %s FOR NO KEY UPDATE", [document.pk])
    assert elsewhere(lambda: jobs.sweep(Document)).result(30) == 0
    document.refresh_from_db()
    assert document.status == Document.RUNNING


def test_one_sweep_asks_every_kind_and_one_that_fails_stops_no_other(
    document: Document, sent: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Document.objects.update(created_at=timezone.now() - LONG_AGO)
    draft = Draft.objects.create(collection=document.collection)
    Draft.objects.update(created_at=timezone.now() - LONG_AGO)
    answer = Answer.objects.create(conversation=Conversation.objects.create(), question="How heavy?")
    Answer.objects.update(created_at=timezone.now() - LONG_AGO)
    jobs.sweep_all()
    assert sorted(sent) == [
        ("retrieval.tasks.ingest_document", document.pk),
        ("retrieval.tasks.resume_draft", draft.pk),
    ]
    answer.refresh_from_db()
    assert answer.status == Answer.Status.FAILED, "it was never begun"
    sent.clear()
    Draft.objects.update(enqueued_at=None)
    whole = jobs.sweep

    def failing(model: type[jobs.Job]) -> int:
        if model is Document:
            raise OperationalError("server closed the connection unexpectedly")
        return whole(model)

    monkeypatch.setattr(jobs, "sweep", failing)
    jobs.sweep_all()
    assert sent == [(Draft.TASK, draft.pk)]
    assert "The jobs of Document were not swept." in caplog.text
