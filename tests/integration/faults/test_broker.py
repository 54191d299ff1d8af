"""The broker is away, hangs, or speaks another language: uploads are kept, and read when the schedule comes round."""

import socket
import threading
import time

import pytest

from core import readiness
from core.job_queue import SENT_WITHIN, enqueue_forgotten_jobs
from ragsite.celery import app
from retrieval.documents import submission
from retrieval.models import Document
from tests.support.faults import checks_with

pytestmark = pytest.mark.django_db(transaction=True)

SOON_SECONDS = 20.0


@pytest.fixture(autouse=True)
def _nothing_remembered(_broker_in_memory, monkeypatch):
    # The database and the embedder hang nowhere, but the machine may be busy.
    monkeypatch.setattr(readiness, "DEADLINE_SECONDS", 10.0)
    checks_with("broker")["broker"].finding = None
    yield
    app._pool = app.amqp._producer_pool = None


def serve(kind):
    """Return a listener and its port: closed, silent, or sending garbage."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    if kind == "away":
        return listener, listener.getsockname()[1]
    listener.listen(16)

    def answer():
        while True:
            try:
                link, _ = listener.accept()
                link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            except OSError:
                return

    if kind == "garbage":
        threading.Thread(target=answer, daemon=True).start()
    return listener, listener.getsockname()[1]


@pytest.mark.parametrize("kind", ["away", "silent", "garbage"])
def test_a_broker_that_does_not_work_loses_no_upload(client, collection, kind, monkeypatch):
    listener, port = serve(kind)
    with listener:
        app.conf.broker_url = f"redis://127.0.0.1:{port}/0"
        app.conf.broker_transport_options = {"socket_connect_timeout": 1, "socket_timeout": 1}
        started = time.monotonic()
        ready = client.get("/readyz")
        assert ready.status_code == 200
        assert "broker" in ready.json()["degraded"]
        # A message of the broker or its client may contain an address or a password.
        assert str(port) not in ready.json()["checks"]["broker"]["detail"]
        document = submission.submit(collection, "pump.md", b"# Pump\n\nIt weighs 3450 grams.").document
        assert time.monotonic() - started < SOON_SECONDS
        document.refresh_from_db()
        assert document.status == Document.Status.PENDING
    # The schedule finds the row, whatever became of the message.
    app.conf.broker_url, app.conf.broker_transport_options = "memory://", {}
    app._pool = app.amqp._producer_pool = None
    Document.objects.update(created_at=document.created_at - 2 * SENT_WITHIN)
    assert enqueue_forgotten_jobs(Document) == 1
