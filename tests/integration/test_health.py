from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone

from chat.models import Answer, Conversation
from evaluation.models import Judgement
from ragsite import health
from retrieval import conf
from retrieval.exceptions import EmbeddingFailed
from retrieval.models import CollectionStatistics, Document, Embedder
from retrieval.reconciliation.runs import reconcile


@pytest.fixture(autouse=True)
def _nothing_remembered():
    for check in health.CHECKS.values():
        if isinstance(check, health.Remembered):
            check.finding = None


def test_alive_without_a_database(client):
    response = client.get("/healthz")  # pytest-django refuses the database here
    assert response.status_code == 200
    assert response.json() == {"status": "ok"}
    assert "no-store" in response["Cache-Control"]
    assert client.post("/healthz").status_code == 405


@pytest.mark.django_db
def test_ready(client, collection, ingest):
    ingest(collection, "a.md", "# A\n\nWords.")
    response = client.get("/readyz")
    body = response.json()
    assert response.status_code == 200, body
    assert body["status"] == "ready"
    assert body["degraded"] == []
    assert set(body["checks"]) == {
        "database", "migrations", "pgvector", "embedder", "search_profile", "broker", "worker", "indexes"
    }  # fmt: skip
    assert body["documents"] == {"pending": 0, "processing": 0, "ready": 1, "failed": 0}


@pytest.mark.django_db
def test_a_lost_database_is_not_ready_and_tells_no_secret(client, monkeypatch):
    class Lost:
        def cursor(self):
            raise OperationalError('connection to "10.1.2.3", user "ragsite", password "hunter2" failed')

    monkeypatch.setattr(health, "connection", Lost())
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert "hunter2" not in response.content.decode()
    assert "10.1.2.3" not in response.content.decode()


@pytest.mark.django_db
def test_a_broken_embedder_degrades(client, monkeypatch, settings):
    class Broken:
        name, dimension = "broken", 3

        def embed_query(self, text):
            raise EmbeddingFailed("the key sk-123 was refused")

    monkeypatch.setattr(conf, "embedder", lambda: Broken())
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["degraded"] == ["embedder"]
    assert response.json()["status"] == "degraded"
    assert "sk-123" not in response.content.decode()
    settings.RETRIEVAL_DEFAULT_METHOD = "vector"
    health.CHECKS["embedder"].finding = None
    assert client.get("/readyz").status_code == 503


@pytest.mark.django_db
def test_another_embedders_vectors_degrade(client):
    Embedder.objects.create(name="another", dimension=3, is_active=True)
    assert client.get("/readyz").json()["degraded"] == ["embedder"]


@pytest.mark.django_db
def test_an_unreachable_broker_degrades(client, monkeypatch):
    def refuse(**kwargs):
        raise ConnectionError("redis://:hunter2@broker refused")

    monkeypatch.setattr(health.celery_app, "connection_for_write", refuse)
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["degraded"] == ["broker"]
    assert "hunter2" not in response.content.decode()


@pytest.mark.django_db
def test_documents_that_nobody_reads_degrade(client, collection):
    waiting = Document.objects.create(collection=collection, source="a.md", content_hash="x")
    assert client.get("/readyz").json()["degraded"] == []
    Document.objects.filter(pk=waiting.pk).update(updated_at=timezone.now() - timedelta(minutes=5))
    response = client.get("/readyz")
    assert response.json()["degraded"] == ["worker"]
    assert response.json()["documents"]["pending"] == 1
    Document.objects.create(
        collection=collection, source="b.md", content_hash="x", status="processing", heartbeat_at=timezone.now()
    )
    assert client.get("/readyz").json()["degraded"] == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("version", "status", "degraded"),
    [("0.8.6", 200, []), ("0.9.0", 200, []), ("0.8.5", 200, ["pgvector"]), ("0.7.4", 503, ["pgvector"])],
)
def test_the_version_of_pgvector(client, monkeypatch, version, status, degraded):
    class Cursor:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def execute(self, sql):
            pass

        def fetchone(self):
            return (version,)

    class Connection:
        def cursor(self):
            return Cursor()

    migrated = health.Remembered(lambda: health.Finding())
    monkeypatch.setitem(health.CHECKS, "migrations", migrated)
    monkeypatch.setattr(health, "connection", Connection())
    response = client.get("/readyz")
    assert response.status_code == status
    assert response.json()["degraded"] == degraded


@pytest.mark.django_db
def test_migrations_that_wait_are_not_ready(client, monkeypatch):
    monkeypatch.setattr(health.MigrationExecutor, "migration_plan", lambda self, targets: [("chat", "0003")])
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "migrate" in response.json()["checks"]["migrations"]["detail"]


def test_a_finding_is_remembered_for_a_while():
    calls = []
    check = health.Remembered(lambda: calls.append(1) or health.Finding())
    assert check() == check()
    assert len(calls) == 1


@pytest.mark.django_db
def test_metrics_are_for_this_machine_and_staff(client, settings, collection):
    Document.objects.create(collection=collection, source="a.md", content_hash="x")
    local = client.get("/metrics")
    assert local.status_code == 200
    assert 'ragsite_documents{status="pending"} 1.0' in local.content.decode()
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 403
    assert client.get("/metrics", REMOTE_ADDR="").status_code == 403
    assert client.get("/metrics", REMOTE_ADDR="::1").status_code == 200
    assert client.get("/metrics", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 403
    settings.METRICS_PUBLIC = True
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 200
    settings.METRICS_PUBLIC = False
    client.force_login(User.objects.create_user("reader"))
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 403
    client.force_login(User.objects.create_user("editor", is_staff=True))
    assert client.get("/metrics", REMOTE_ADDR="192.0.2.1").status_code == 200


@pytest.mark.django_db
def test_metrics_count_judgements_by_judge_and_status(client, collection):
    answer = Answer.objects.create(conversation=Conversation.objects.create(), question="?")
    Judgement.objects.create(answer=answer, judge="offline", status="failed", error="No embedder.")
    shown = client.get("/metrics").content.decode()
    assert 'ragsite_judgements{judge="offline",status="failed"} 1.0' in shown
    assert 'ragsite_judgements{judge="model",status="done"} 0.0' in shown


@pytest.mark.django_db
def test_readiness_is_json_without_a_login(client):
    assert json.loads(client.get("/readyz", REMOTE_ADDR="192.0.2.1").content)["checks"]["database"]["state"] == "ok"


@pytest.mark.django_db(transaction=True)
def test_faults_that_the_last_index_check_found(client, collection, ingest):
    ingest(collection, "a.md", "# A\n\nWords.")
    CollectionStatistics.objects.update(chunks=7)
    assert "indexes" not in client.get("/readyz").json()["degraded"]  # nobody has checked yet
    reconcile()
    body = client.get("/readyz").json()
    assert "indexes" in body["degraded"]
    assert "reconcile --repair" in body["checks"]["indexes"]["detail"]
    assert 'ragsite_index_inconsistencies{kind="statistics"} 1.0' in client.get("/metrics").content.decode()
    reconcile(repair=True)
    assert "indexes" not in client.get("/readyz").json()["degraded"]
    assert 'ragsite_index_inconsistencies{kind="statistics"} 0.0' in client.get("/metrics").content.decode()
