"""The whole site as `make run` starts it, on the test database."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil
import pytest

from ragsite.machine import is_answering
from tests.support.site import SiteProcess, free_port, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(sys.platform != "linux", reason="names of processes are told by Linux alone"),
]


def test_what_serve_has_loaded_runs_as_its_forks_and_starts_again(tmp_path: Path) -> None:
    (tmp_path / "demo-loaded").touch()
    log = tmp_path / "serve.log"
    port = free_port()
    site = SiteProcess(["django", "serve", "--port", str(port)], log, DATA_DIR=str(tmp_path), WEB_CONCURRENCY="1")
    try:
        wait_until(lambda: "Ready: " in log.read_text(), 60, f"the site\n{log.read_text()}")
        serve = psutil.Process(site.popen.pid)
        # Whoever forks has no threads: their locks would stay locked in the forks.
        assert serve.num_threads() == 1
        running = {process.name(): process for process in serve.children()}
        assert set(running) == {"ragsite-web", "ragsite-worker", "ragsite-beat"}
        assert [process.name() for process in running["ragsite-web"].children()] == ["ragsite-web-1"]
        wait_until((tmp_path / "scheduler.seen").exists, 60, "the scheduler's sign of life")
        running["ragsite-web"].kill()
        wait_until(lambda: "web ended with status -9" in log.read_text(), 60)
        wait_until(lambda: is_answering("127.0.0.1", port, "/readyz"), 60)
        started = serve.children(recursive=True)
        site.popen.send_signal(signal.SIGTERM)
        assert site.popen.wait(30) == 0
        assert not any(process.is_running() for process in started)
        assert "Traceback" not in log.read_text()
    finally:
        site.stop()
