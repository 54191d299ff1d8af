import io
import threading
import uuid
from datetime import timedelta
from unittest import mock

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone

from chat.models import Answer, Conversation
from core import disk, readiness
from core.key_limits import KeyScope
from core.readiness import Health
from evaluation.models import Judgement
from ragsite.celery import app
from ragsite.models import ApiKey
from ragsite.operations import queues
from retrieval import readiness as retrieval_readiness
from retrieval.documents import sandbox
from retrieval.documents.reconciliation import reconcile_index
from retrieval.exceptions import EmbeddingFailed
from retrieval.index import embedder_choice
from retrieval.models import Collection, CollectionStatistics, Document, Draft, Embedder, Webhook, WebhookDelivery
from tests.support.faults import checks_with, forget_findings
from tests.support.keys import key_of
from tests.support.people import make_staff
from tests.support.serving import QuietHandler, serving
from tests.support.site import free_port

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch):
    # No check hangs here, but the machine may be busy.
    monkeypatch.setattr(readiness, "DEADLINE_SECONDS", 60)
    forget_findings()


@pytest.fixture
def degraded(client):
    """``degraded()``: the names of the checks that /readyz lists."""
    return lambda: client.get("/readyz").json()["degraded"]


def test_alive_without_a_database(client, django_db_blocker):
    with django_db_blocker.block():
        response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}
    assert "no-store" in response["Cache-Control"]
    assert client.post("/healthz").status_code == 405


def test_ready(client, collection, ingest):
    ingest(collection, "a.md", "# A\n\nWords.")
    response = client.get("/readyz", REMOTE_ADDR="192.0.2.1")
    body = response.json()
    assert response.status_code == 200, body
    assert body["status"] == "ready"
    assert body["degraded"] == []
    assert set(body["checks"]) == {
        "database", "migrations", "pgvector", "embedder", "search_profile", "broker", "worker", "indexes",
        "queue", "disk", "files", "nodes", "scheduler", "breakers", "sandbox", "language_model",
        "drafts",
        "slack",
    }  # fmt: skip
    assert body["documents"] == {"pending": 0, "processing": 0, "ready": 1, "failed": 0}


def test_a_lost_database_is_not_ready_and_tells_no_secret(client, monkeypatch):
    told = 'connection to "10.1.2.3", user "ragsite", password "hunter2" failed'
    monkeypatch.setattr(readiness, "connection", mock.Mock(**{"cursor.side_effect": OperationalError(told)}))
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert "hunter2" not in response.content.decode()
    assert "10.1.2.3" not in response.content.decode()


def test_a_broken_embedder_degrades(client, monkeypatch, settings):
    class Broken:
        name, dimension = "broken", 3

        def embed_query(self, text):
            raise EmbeddingFailed("the key sk-123 was refused")

    monkeypatch.setattr(embedder_choice, "get_embedder", lambda: Broken())
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["degraded"] == ["embedder"]
    assert response.json()["status"] == "degraded"
    assert "sk-123" not in response.content.decode()
    settings.RETRIEVAL_DEFAULT_METHOD = "vector"
    forget_findings()
    assert client.get("/readyz").status_code == 503


def test_another_embedders_vectors_degrade(degraded):
    Embedder.objects.create(name="another", dimension=3, is_active=True)
    assert degraded() == ["embedder"]


def test_documents_that_nobody_reads_or_gets_on_with_degrade(client, collection):
    waiting = Document.objects.create(collection=collection, source="a.md", content_hash="x")
    assert client.get("/readyz").json()["degraded"] == []
    Document.objects.filter(pk=waiting.pk).update(updated_at=timezone.now() - timedelta(minutes=5))
    response = client.get("/readyz")
    assert response.json()["degraded"] == ["worker"]
    assert response.json()["documents"]["pending"] == 1
    busy = Document.objects.create(
        collection=collection, source="b.md", content_hash="x", status="processing", heartbeat_at=timezone.now()
    )
    assert client.get("/readyz").json()["degraded"] == []
    Document.objects.filter(pk=busy.pk).update(updated_at=timezone.now() - timedelta(minutes=4))
    body = client.get("/readyz").json()
    assert body["degraded"] == ["worker"]
    assert "without progress for 3 minutes: 1" in body["checks"]["worker"]["detail"]
    assert body["documents"]["processing"] == 1


@pytest.mark.parametrize(
    ("version", "status", "degraded"),
    [("0.8.6", 200, []), ("0.9.0", 200, []), ("0.8.5", 200, ["pgvector"]), ("0.7.4", 503, ["pgvector"])],
)
def test_the_version_of_pgvector(client, monkeypatch, version, status, degraded):
    connection = mock.MagicMock()
    connection.cursor.return_value.__enter__.return_value.fetchone.return_value = (version,)
    monkeypatch.setitem(checks_with("migrations"), "migrations", readiness.CheckResult)
    monkeypatch.setattr(retrieval_readiness, "connection", connection)
    response = client.get("/readyz")
    assert response.status_code == status
    assert response.json()["degraded"] == degraded


def test_migrations_that_wait_are_not_ready(client, monkeypatch):
    monkeypatch.setattr(readiness.MigrationExecutor, "migration_plan", lambda self, targets: [("chat", "0003")])
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "migrate" in response.json()["checks"]["migrations"]["detail"]


def test_a_finding_is_remembered_for_a_while():
    calls = []
    check = readiness.CachedCheck(lambda: calls.append(1) or readiness.CheckResult())
    assert check() == check()
    assert len(calls) == 1


def test_metrics_are_for_this_machine_and_staff(client, settings, collection):
    Document.objects.create(collection=collection, source="a.md", content_hash="x")
    local = client.get("/metrics")
    assert local.status_code == 200
    assert 'ragsite_documents{status="pending"} 1.0' in local.content.decode()

    def status(address="192.0.2.1", **headers):
        return client.get("/metrics", REMOTE_ADDR=address, headers=headers).status_code

    assert [status(), status(""), status("::1"), status("127.0.0.1", Forwarded="for=192.0.2.1")] == [403, 403, 200, 403]
    settings.METRICS_PUBLIC = True
    assert status() == 200
    settings.METRICS_PUBLIC = False
    for name, is_staff, expected in (("reader", False, 403), ("editor", True, 200)):
        client.force_login(User.objects.create_user(name, is_staff=is_staff))
        assert status() == expected


@pytest.mark.parametrize(
    ("is_staff", "scopes", "is_limited", "status"),
    [
        (True, [KeyScope.ADMIN], False, 200),
        (True, list(KeyScope), False, 200),
        (True, [KeyScope.SEARCH, KeyScope.ASK, KeyScope.DOCUMENTS_WRITE], False, 403),
        (True, [KeyScope.ADMIN], True, 403),
        (False, [KeyScope.ADMIN], False, 403),
    ],
)
@pytest.mark.parametrize("scheme", ["Bearer", "Token"])
def test_keys_of_staff_with_the_scope_admin_read_metrics(
    client, collection, scheme, is_staff, scopes, is_limited, status
):
    user = User.objects.create_user("prometheus", is_staff=is_staff)
    secret = key_of(user, *scopes, **({"collections": [collection]} if is_limited else {}))

    def answer(secret):
        return client.get("/metrics", REMOTE_ADDR="192.0.2.1", headers={"Authorization": f"{scheme} {secret}"})

    assert answer(secret).status_code == status
    assert answer("unknown").status_code == 401
    ApiKey.objects.update(revoked_at=timezone.now())
    assert answer(secret).status_code == 401
    # A session does not make up for it.
    client.force_login(make_staff("boss"))
    assert answer(secret).status_code == 401


def test_metrics_count_judgements_by_judge_and_status(client, collection):
    answer = Answer.objects.create(conversation=Conversation.objects.create(), question="?")
    Judgement.objects.create(answer=answer, judge="offline", status="failed", error="No embedder.")
    shown = client.get("/metrics").content.decode()
    assert 'ragsite_judgements{judge="offline",status="failed"} 1.0' in shown
    assert 'ragsite_judgements{judge="model",status="done"} 0.0' in shown


def test_faults_that_the_last_index_check_found(client, collection, ingest):
    ingest(collection, "a.md", "# A\n\nWords.")
    CollectionStatistics.objects.update(chunks=7)
    assert "indexes" not in client.get("/readyz").json()["degraded"]  # no check has run yet
    reconcile_index()
    body = client.get("/readyz").json()
    assert "indexes" in body["degraded"]
    assert "reconcile --repair" in body["checks"]["indexes"]["detail"]
    assert 'ragsite_index_inconsistencies{kind="statistics"} 1.0' in client.get("/metrics").content.decode()
    reconcile_index(repair=True)
    assert "indexes" not in client.get("/readyz").json()["degraded"]
    assert 'ragsite_index_inconsistencies{kind="statistics"} 0.0' in client.get("/metrics").content.decode()


def test_a_draft_that_fails_again_and_again_degrades(client, collection):
    copy = Collection.objects.create(slug="copy", name="Copy")
    draft = Draft.objects.create(
        collection=collection, working_copy=copy, status=Draft.Status.DISCARDED, attempts=2, error="This step failed."
    )
    assert client.get("/readyz").json()["degraded"] == []
    Draft.objects.filter(pk=draft.pk).update(attempts=3)
    body = client.get("/readyz").json()
    assert body["degraded"] == ["drafts"]
    assert "fail to be copied or cleared away: 1" in body["checks"]["drafts"]["detail"]


def test_work_that_waits_too_long_degrades(client, collection):
    now = timezone.now()
    busy = Document.objects.create(
        collection=collection, source="a.md", content_hash="x", status="processing", heartbeat_at=now
    )
    waiting = Document.objects.create(collection=collection, source="b.md", content_hash="x")
    # The schedule plans the job again, as it does with rows that wait in the queue.
    Document.objects.filter(pk=waiting.pk).update(
        updated_at=now - timedelta(minutes=14), retry_at=now + timedelta(minutes=3)
    )
    # Not due yet.
    Document.objects.create(
        collection=collection, source="c.md", content_hash="x", attempts=1, retry_at=now + timedelta(minutes=1)
    )
    answer = Answer.objects.create(conversation=Conversation.objects.create(), question="?")
    Answer.objects.filter(pk=answer.pk).update(created_at=now - timedelta(minutes=3))
    body = client.get("/readyz").json()
    assert body["degraded"] == ["queue"], busy
    assert "1 documents, the oldest for 14 min; 1 answers, the oldest for 3 min" in body["checks"]["queue"]["detail"]
    shown = client.get("/metrics").content.decode()
    assert 'ragsite_queue_length{queue="documents"} 1.0' in shown
    assert 'ragsite_queue_age_seconds{queue="documents"} 84' in shown
    assert 'ragsite_queue_age_seconds{queue="judgements"} 0.0' in shown


@pytest.mark.parametrize("name", ["documents", "judgements", "deliveries"])
@pytest.mark.parametrize("waits", [timedelta(seconds=30), timedelta(minutes=2), timedelta(hours=2)])
def test_a_queue_that_no_worker_takes_from_is_named_with_its_length_and_age(
    client, admin_client, collection, name, waits
):
    job = waiting_job(name, collection)
    since = timezone.now() - waits
    type(job).objects.update(created_at=since, **({"updated_at": since} if name == "documents" else {}))
    body = client.get("/readyz").json()
    assert (name in body["checks"]["worker"]["detail"]) == (waits > timedelta(minutes=1))
    assert (name in body["checks"]["queue"]["detail"]) == (waits > timedelta(hours=1))
    assert set(body["queues"]) == set(queues.LATE_AFTER)
    assert body["queues"][name]["length"] == 1
    assert body["queues"][name]["oldest_seconds"] == pytest.approx(waits.total_seconds(), abs=20)
    shown = client.get("/metrics").content.decode()
    assert f'ragsite_queue_length{{queue="{name}"}} 1.0' in shown
    assert f'ragsite_queue_age_seconds{{queue="{name}"}} {int(waits.total_seconds()) // 10}' in shown
    assert str(queues.QUEUE_LABELS[name]) in admin_client.get("/admin/evaluation/dashboard/").text
    # A worker on another job, or one that was busy a moment ago, takes this one next.
    other = waiting_job(name, collection)
    type(job).objects.filter(pk=other.pk).update(heartbeat_at=timezone.now())
    assert "worker" not in client.get("/readyz").json()["degraded"]


def waiting_job(name, collection):
    if name == "documents":
        return Document.objects.create(collection=collection, source=f"{uuid.uuid4()}.md", content_hash="x")
    if name == "judgements":
        answer = Answer.objects.create(conversation=Conversation.objects.create(), question="?", status="completed")
        return Judgement.objects.create(answer=answer, judge="offline")
    webhook = Webhook.objects.create(address="https://a.example/", secret="", events=["document.failed"])
    return WebhookDelivery.objects.create(webhook=webhook, event="document.failed", payload={})


@pytest.mark.worker
def test_maintenance_that_no_worker_does_is_named(client, queue):
    for _ in range(30):
        app.send_task("retrieval.tasks.sweep")
    assert client.get("/readyz").json()["queues"]["maintenance"]["length"] == 30
    with connection.cursor() as cursor:
        cursor.execute("UPDATE pgmq.q_maintenance SET enqueued_at = enqueued_at - interval '6 minutes'")
    body = client.get("/readyz").json()
    assert body["degraded"] == ["queue"]
    assert "30 maintenance, the oldest for 6 min" in body["checks"]["queue"]["detail"]


def test_a_disk_that_fills_degrades(client, settings):
    (room, *_) = disk.list_free_space()
    assert client.get("/readyz").json()["checks"]["disk"]["state"] == "ok"
    settings.DISK_RESERVE_BYTES = room.free_bytes * 2 // 3
    assert "nearly full" in client.get("/readyz").json()["checks"]["disk"]["detail"]
    settings.DISK_RESERVE_BYTES = room.free_bytes * 2
    response = client.get("/readyz")
    assert response.status_code == 200  # what is stored can be read
    assert response.json()["degraded"] == ["disk"]
    assert "nothing is saved" in response.json()["checks"]["disk"]["detail"]
    assert "ragsite_disk_free_bytes{" in client.get("/metrics").content.decode()


def test_a_check_that_hangs_keeps_no_other_from_answering(client, monkeypatch):
    monkeypatch.setattr(readiness, "DEADLINE_SECONDS", 0.3)
    hang = threading.Event()

    def hung():
        hang.wait(60)
        return readiness.CheckResult()

    monkeypatch.setitem(checks_with("broker"), "broker", hung)
    try:
        before = threading.active_count()
        for _ in range(3):
            body = client.get("/readyz").json()
            assert body["checks"]["broker"] == {"state": "degraded", "detail": "It did not answer within 0.3 s."}
        assert sum(thread.name == "readiness" for thread in threading.enumerate()) <= len(
            readiness.list_check_groups()
        ), before
    finally:
        hang.set()


def test_a_local_model_that_does_not_run_degrades(client, admin_client, settings):
    settings.LOCAL_MODEL, settings.LOCAL_MODEL_PORT, settings.OPENAI_MODEL = "/models/tiny.gguf", free_port(), "tiny"
    said = "The local language model does not run; answers are quoted from the documents."
    assert client.get("/readyz").json()["checks"]["language_model"] == {"state": "degraded", "detail": said}
    assert said in admin_client.get("/admin/").text
    with serving(_Healthy, settings.LOCAL_MODEL_PORT):
        assert client.get("/readyz").json()["checks"]["language_model"] == {"state": "ok", "detail": "tiny"}
        assert said not in admin_client.get("/admin/").text


class _Healthy(QuietHandler):
    """A model server that has loaded its model."""

    def do_GET(self):
        self.send(status=200 if self.path == "/health" else 404)


@pytest.mark.parametrize("is_required", [False, True])
def test_a_missing_guard_of_the_sandbox_degrades(client, admin_client, monkeypatch, settings, is_required):
    settings.SANDBOX_REQUIRED = is_required
    monkeypatch.setattr(sandbox.read_sandbox_state(), "templates_started", 1)
    monkeypatch.setattr(sandbox.read_sandbox_state(), "missing_guards", ("files",))
    body = client.get("/readyz").json()
    assert body["degraded"] == ["sandbox"]
    assert ("No file is read" in body["checks"]["sandbox"]["detail"]) is is_required
    page = admin_client.get("/admin/evaluation/dashboard/").content.decode()
    assert "lacks these guards on this machine: files." in page
    assert ("No file is read." in page) is is_required
    out = io.StringIO()
    call_command("check", stderr=out)  # the start calls it
    assert "DEGRADED: the sandbox lacks these guards on this machine: files;" in out.getvalue()
    assert ("no file is read" in out.getvalue()) is is_required


def test_a_missing_engine_is_named(monkeypatch):
    monkeypatch.setattr(sandbox.read_sandbox_state(), "missing_guards", ())
    assert retrieval_readiness.check_file_sandbox().state is Health.OK
    monkeypatch.setattr(retrieval_readiness, "find_spec", lambda name: None)
    assert "xberg is not installed" in retrieval_readiness.check_file_sandbox().detail
