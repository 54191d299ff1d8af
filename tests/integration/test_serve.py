"""The whole site as `make run` starts it, on the test database."""

import signal
import sys

import httpx2
import psutil
import pytest

from bench import build_site_environment
from ragsite.processes.machine import is_answering
from tests.integration.test_killed import events_of
from tests.support.model_server import model_server
from tests.support.site import SiteProcess, free_port, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(sys.platform != "linux", reason="names of processes are told by Linux alone"),
]


@pytest.fixture
def model():
    with model_server() as state:
        yield state


def test_what_serve_has_loaded_runs_as_its_forks_and_starts_again(tmp_path, collection, ingest, model):
    ingest(collection, "pump.md", f"# Pump\n\nThe MX-9920-W is a pump. It weighs 3450 grams. Sizes: {list(range(40))}.")
    model.pieces, model.delay_seconds = [f"The MX-9920-W of size {n} weighs 3450 grams [1]. " for n in range(40)], 0.5
    (tmp_path / "demo-loaded").touch()
    log = tmp_path / "serve.log"
    port = free_port()
    site = SiteProcess(
        ["django", "serve", "--port", str(port)], log, DATA_DIR=str(tmp_path), WEB_CONCURRENCY="1",
        ANSWERS_AT_ONCE="1", OPENAI_BASE_URL=model.url, OPENAI_MODEL="tiny",
        **build_site_environment(ANSWERS_WAITING=0),
    )  # fmt: skip
    try:
        wait_until(lambda: "Ready: " in log.read_text(), 60, f"the site\n{log.read_text()}")
        serve = psutil.Process(site.popen.pid)
        # The forking process has no threads: their locks would stay locked in the forks.
        assert serve.num_threads() == 1
        running = {process.name(): process for process in serve.children()}
        assert set(running) == {
            "ragsite-web", "ragsite-documen", "ragsite-worker", "ragsite-judgeme", "ragsite-beat"
        }  # fmt: skip
        assert [process.name() for process in running["ragsite-web"].children()] == ["ragsite-web-1"]
        wait_until((tmp_path / "scheduler.seen").exists, 60, "the scheduler's sign of life")
        # The answer of a killed web server keeps no place in the queue.
        client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
        question = {"question": "How heavy is the MX-9920-W?", "anew": True}
        with client.stream("POST", "/api/v1/ask/", json={**question, "stream": True}) as response:
            events = events_of(response)
            wait_until(lambda: next(events)[1] == "token")
            running["ragsite-web"].kill()
        model.delay_seconds = 0.0
        wait_until(lambda: "web ended with status -9" in log.read_text(), 60)
        wait_until(lambda: is_answering("127.0.0.1", port, "/readyz"), 60)
        assert client.post("/api/v1/ask/", json=question).status_code == 200
        started = serve.children(recursive=True)
        site.popen.send_signal(signal.SIGTERM)
        assert site.popen.wait(30) == 0
        assert not any(process.is_running() for process in started)
        assert "Traceback" not in log.read_text()
    finally:
        site.stop()
