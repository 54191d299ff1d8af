"""PostgreSQL hangs or is away: the answers to probes, and their delay. `test_killed.py` has its death during work."""

import os
import signal
import socket
import threading
import time

import pytest
from django.conf import settings
from django.db import connections

from core import readiness
from tests.support.faults import checks_with

pytestmark = pytest.mark.django_db(transaction=True)

# The deadline is 1.5 s, plus a generous allowance for a busy machine; without a deadline these tests would never end.
SOON_SECONDS = 8.0


@pytest.fixture(autouse=True)
def _known_before(client):
    """Warm up slow first uses (the embedder's model)."""
    checks_with("embedder")["embedder"]()


@pytest.fixture
def stopped_server():
    """Stop the postmaster: it accepts connections and is silent. Yield its id, to continue it."""
    pid = settings.EMBEDDED_POSTGRES._read_postmaster_pid()
    os.kill(pid, signal.SIGSTOP)
    yield pid
    os.kill(pid, signal.SIGCONT)


@pytest.fixture
def black_hole(monkeypatch):
    """Move the database to an address that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        described = dict(connections.settings["default"])
        described |= {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": "127.0.0.1",
            "PORT": str(listener.getsockname()[1]),
            "OPTIONS": {},
        }
        monkeypatch.setitem(connections.settings, "default", described)
        yield


def readiness_threads():
    return sum(thread.name == "readiness" for thread in threading.enumerate())


def test_a_stopped_server_is_told_of_in_time_and_comes_back(client, stopped_server):
    started = time.monotonic()
    response = client.get("/readyz")
    assert time.monotonic() - started < SOON_SECONDS
    assert response.status_code == 503
    told = response.json()["checks"]
    assert told["database"] == {"state": "failed", "detail": "It did not answer within 1.5 s."}
    assert told["worker"]["detail"] == "Not looked at: database did not answer."
    assert told["disk"]["state"] == "ok"
    os.kill(stopped_server, signal.SIGCONT)
    deadline = time.monotonic() + 60
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_probes_of_a_server_that_never_answers_do_not_pile_up(client, black_hole):
    started = time.monotonic()
    for _ in range(3):
        assert client.get("/readyz").status_code == 503
    assert time.monotonic() - started < 3 * SOON_SECONDS
    assert readiness_threads() <= len(readiness.list_check_groups())


def test_counters_are_shown_without_the_database(client, black_hole):
    started = time.monotonic()
    shown = client.get("/metrics").content.decode()
    assert time.monotonic() - started < SOON_SECONDS
    assert "ragsite_database_up 0.0" in shown
    assert "ragsite_disk_free_bytes{" in shown
