"""A web server of two processes, each with a connection of its own, and a model that a test can pause."""

import contextlib
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx2
import psutil
import pytest
from django.db import connection

from bench import build_site_environment
from chat.models import Answer
from tests.integration.test_killed import events_of
from tests.support.model_server import model_server
from tests.support.site import WebServer, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = {"question": "How heavy is the MX-9920-W?", "stream": True, "anew": True}


@pytest.fixture(scope="module")
def model():
    with model_server() as state:
        yield state


@pytest.fixture(scope="module")
def server(model, django_db_setup, tmp_path_factory):
    """Start the server of all tests of this module; the last test ends it."""
    started = WebServer(
        tmp_path_factory.mktemp("web") / "web.log", config="python:tests.support.hanging_web", WEB_CONCURRENCY="2",
        ANSWERS_AT_ONCE="2", **build_site_environment(ANSWERS_WAITING=2), ASK_RATE="7/h", OPENAI_BASE_URL=model.url,
        OPENAI_MODEL="tiny",
    )  # fmt: skip
    yield started
    started.stop()


def processes(server):
    first = psutil.Process(server.popen.pid)
    wait_until(lambda: len(first.children()) == 2, what="both processes")
    return first.children()


def ports_of(server, process):
    """Return the callers' ports of the connections that the process has taken."""
    lines = process.net_connections("tcp")
    return [line.raddr.port for line in lines if line.raddr and line.laddr.port == server.port]


@contextlib.contextmanager
def client_of(server, process):
    """Yield a client on a connection that this process has taken."""
    with ExitStack() as opened:
        for _ in range(50):
            client = opened.enter_context(httpx2.Client(base_url=server.url, timeout=60))
            stream = client.get("/healthz").extensions["network_stream"]
            if stream.get_extra_info("client_addr")[1] in ports_of(server, process):
                yield client
                return
    raise AssertionError("No connection came to this process.")


def figure(server, name):
    lines = httpx2.get(f"{server.url}/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_connections_that_the_database_ended_are_replaced(server):
    pages = [f"{server.url}/", f"{server.url}/healthz", f"{server.url}/api/v1/collections/"]
    for _ in range(2):
        with ThreadPoolExecutor(8) as threads:
            before = list(threads.map(httpx2.get, pages * 4))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            assert cursor.fetchone()[0] >= 2
        after = [httpx2.get(page) for page in pages * 4]
        assert [response.status_code for response in after] == [response.status_code for response in before]
        assert after[0].status_code == 200


def events_of_get(client, path, headers=None):
    with client.stream("GET", path, headers=headers) as response:
        yield from events_of(response)


def test_a_process_that_hangs_is_replaced_and_its_neighbour_goes_on(server):
    restarts = 'ragsite_process_restarts{process="web-process",reason="hung"}'
    # The first signal makes its loop hang, the second stops the process.
    for times, number in enumerate((signal.SIGUSR2, signal.SIGSTOP), start=1):
        hung, other = processes(server)
        hung.send_signal(number)
        while hung.is_running() and hung.status() != psutil.STATUS_ZOMBIE:
            assert httpx2.get(f"{server.url}/healthz", timeout=5).status_code == 200
        assert other in processes(server)
        wait_until(lambda times=times: figure(server, restarts) == times)
        # The log shows where a process hung that can still write.
        assert server.log.read_text().count("Current thread") == 1


def test_two_processes_are_one_web_server(collection, ingest, model, server):
    ingest(collection, "pump.md", f"# Pump\n\nThe MX-9920-W is a pump. It weighs 3450 grams. Sizes: {list(range(40))}.")
    sentences = [f"The MX-9920-W of size {n} weighs 3450 grams [1]. " for n in range(40)]
    # Longer than a busy machine takes for all that is asked meanwhile.
    model.pieces, model.delay_seconds = sentences * 10, 0.5
    # The forking process has no threads: their locks would stay locked in the forks.
    assert psutil.Process(server.popen.pid).num_threads() == 1
    one, two = processes(server)
    # A rush is dealt out: neither process takes all of it.
    with ExitStack() as lines:
        for _ in range(24):
            lines.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        wait_until(lambda: sum(len(ports_of(server, each)) for each in (one, two)) == 24, what="the connections")
        assert min(len(ports_of(server, each)) for each in (one, two)) >= 3
    # Many who search at once share a few connections; vectors come from the model that was opened before the fork.
    with client_of(server, one) as client, ThreadPoolExecutor(8) as searchers:
        found = list(searchers.map(lambda _: client.post("/api/v1/search/", json={"query": "pump"}).json(), range(8)))
    assert [each["degraded"] for each in found] == [[]] * 8
    with ExitStack() as lines:

        def client_at(process):
            """Open the client only when it asks: a waiting connection is closed, and any process may take the next."""
            return lines.enter_context(client_of(server, process))

        first = events_of(lines.enter_context(client_at(one).stream("POST", "/api/v1/ask/", json=ASKED)))
        begun = [next(first)[0] for _ in range(3)]
        lost = Answer.objects.get()
        # A reader whose connection is lost continues in the other process, with the next word.
        path = f"/api/v1/answers/{lost.pk}/stream/"
        followed = events_of_get(client_at(two), path, headers={"Last-Event-ID": begun[-1]})
        numbers = [int(event_id.split("-")[1]) for event_id in (*begun, next(followed)[0], next(followed)[0])]
        assert numbers == [1, 2, 3, 4, 5]
        followed.close()
        # A process's half of the places is one to write and one to wait; a third question is refused.
        second = events_of(lines.enter_context(client_at(one).stream("POST", "/api/v1/ask/", json=ASKED)))
        _, name, payload = next(second)
        assert (name, payload["place"]) == ("queued", 1)
        refused = client_at(one).post("/api/v1/ask/", json=ASKED)
        assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (503, True)
        assert (figure(server, "ragsite_answers_in_writing"), figure(server, "ragsite_answers_in_queue")) == (1, 1)
        # The process is killed: the other one answers meanwhile, and another one comes.
        one.send_signal(signal.SIGKILL)
        model.pieces, model.delay_seconds = sentences, 0.0
        with client_of(server, two) as client:
            answered = client.post("/api/v1/ask/", json={**ASKED, "stream": False})
        assert "3450 grams" in answered.json()["answer"]
    wait_until(lambda: {each.pid for each in processes(server)} - {one.pid, two.pid}, what="a new process")
    # The killed process's counts are kept, its open answer is not counted, and the answer's reader comes back.
    assert figure(server, "ragsite_refused_questions_total") == 1
    assert (figure(server, "ragsite_answers_in_writing"), figure(server, "ragsite_answers_in_queue")) == (0, 0)
    assert figure(server, 'ragsite_process_restarts{process="web-process",reason="died"}') == 1
    Answer.objects.filter(pk=lost.pk).update(heartbeat_at=lost.created_at)
    with client_of(server, two) as client:
        assert list(events_of_get(client, path))[-1][1] == "completed"
    assert figure(server, "ragsite_answers_total") == 2

    # An answer of one process serves in the other, until a document changes.
    one, two = processes(server)
    again = {**ASKED, "stream": False, "anew": False}
    with client_of(server, one) as client:
        assert client.post("/api/v1/ask/", json=again).json()["answer"] == answered.json()["answer"]
    assert figure(server, 'ragsite_answer_cache_total{outcome="hit"}') == 1
    ingest(collection, "pump.md", "# Pump\n\nThe MX-9920-W is a pump. It weighs 3500 grams.")
    with client_of(server, two) as client:
        assert client.post("/api/v1/ask/", json=again).status_code == 200
    assert figure(server, 'ragsite_answer_cache_total{outcome="hit"}') == 1
    # Told to end, it waits a little for its streams, and gives back what is not written by then.
    model.pieces, model.delay_seconds = [f"piece{n} " for n in range(400)], 0.1
    last, told = {**ASKED, "question": "What does the MX-9920-W weigh, in grams?"}, []
    with (
        client_of(server, one) as client,
        client_of(server, one) as beside,
        client_of(server, two) as other,
        client.stream("POST", "/api/v1/ask/", json=last) as response,
        contextlib.suppress(httpx2.RemoteProtocolError),
    ):
        assert response.status_code == 200, response.read()
        for _id, name, _payload in events_of(response):
            told.append(name)
            if len(told) == 4:
                # Seven questions an hour, of both processes together.
                for each in (beside, other):
                    assert "throttled" in each.post("/api/v1/ask/", json=again).text
                server.popen.send_signal(signal.SIGTERM)
    assert server.popen.wait(30) == 0
    assert set(told) == {"searched", "token"}
    left = Answer.objects.get(question=last["question"])
    assert (left.status, left.attempts, left.lease) == (Answer.Status.PENDING, 1, None)
