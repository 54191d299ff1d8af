"""The whole site as `make run` starts it, on the test database."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.site import SiteProcess, free_port, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(sys.platform != "linux", reason="names of processes are told by Linux alone"),
]


def test_what_serve_has_loaded_runs_as_its_forks(tmp_path: Path) -> None:
    (tmp_path / "demo-loaded").touch()
    log = tmp_path / "serve.log"
    site = SiteProcess(
        ["django", "serve", "--port", str(free_port())], log, DATA_DIR=str(tmp_path), WEB_CONCURRENCY="1"
    )
    try:
        wait_until(lambda: "Ready: " in log.read_text(), 60, f"the site\n{log.read_text()}")
        serve = psutil.Process(site.popen.pid)
        # Whoever forks has no threads: their locks would stay locked in the forks.
        assert serve.num_threads() == 1
        running = {process.name(): process for process in serve.children()}
        assert set(running) == {"ragsite-web", "ragsite-worker", "ragsite-beat"}
        assert [process.name() for process in running["ragsite-web"].children()] == ["ragsite-web-1"]
        killed = running["ragsite-beat"]
        killed.kill()
        wait_until(lambda: {each.name() for each in serve.children() if each.pid != killed.pid} == set(running), 60)
        started = serve.children(recursive=True)
        site.popen.send_signal(signal.SIGTERM)
        assert site.popen.wait(30) == 0
        assert not any(process.is_running() for process in started)
        assert "Traceback" not in log.read_text()
    finally:
        site.stop()
