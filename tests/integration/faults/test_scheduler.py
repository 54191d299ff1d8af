"""The scheduler hangs. A worker that dies in the midst of work: `test_killed.py`; one that hangs: `test_health.py`."""

import os
import signal

import pytest
from django.conf import settings

from bench import build_site_environment
from core import readiness
from ragsite import readiness as site_readiness
from tests.support.site import SiteProcess, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]


def degraded(client):
    return client.get("/readyz").json()["degraded"]


@pytest.fixture(autouse=True)
def _time_to_answer(monkeypatch):
    monkeypatch.setattr(readiness, "DEADLINE_SECONDS", 60)


def test_a_scheduler_that_hangs_is_told_of_and_comes_back(client, tmp_path, monkeypatch, queue):
    monkeypatch.setattr(site_readiness, "SCHEDULER_LOST_AFTER_SECONDS", 20.0)
    seen = settings.SCHEDULER_SEEN_FILE
    assert "scheduler" not in degraded(client), "there may be none on this machine"
    beat = SiteProcess(
        ["ragsite.processes.beat"], tmp_path / "beat.log", **build_site_environment(CELERY_BEAT_MAX_LOOP_INTERVAL=1)
    )
    try:
        wait_until(seen.exists, 60, "the scheduler")
        assert "scheduler" not in degraded(client)
        beat.popen.send_signal(signal.SIGSTOP)
        os.utime(seen, (0, 0))  # time passes
        assert "scheduler" in degraded(client)
        beat.popen.send_signal(signal.SIGCONT)
        wait_until(lambda: "scheduler" not in degraded(client), 60, "the scheduler again")
    finally:
        beat.popen.send_signal(signal.SIGCONT)
        beat.stop()
        seen.unlink(missing_ok=True)
