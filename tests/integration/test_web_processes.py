"""A web server of two processes, each asked by its own socket, with a model that a test holds back."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx2
import psutil
import pytest

from chat.models import Answer
from retrieval.models import Collection, Document
from tests.integration.test_killed import events_of
from tests.support.model_server import ModelServer, model_server
from tests.support.site import WebServer, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

ASKED = {"stream": True, "anew": True}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as state:
        yield state


@pytest.fixture
def server(model: ModelServer, tmp_path: Path) -> Iterator[WebServer]:
    started = WebServer(
        tmp_path / "web.log",
        WEB_CONCURRENCY="2",
        ANSWERS_AT_ONCE="1",
        ANSWERS_WAITING="1",
        ASK_RATE="7/h",
        DATABASE_POOL_SIZE="4",
        OPENAI_BASE_URL=model.url,
        OPENAI_MODEL="tiny",
    )
    yield started
    started.stop()


def processes(server: WebServer) -> list[psutil.Process]:
    return psutil.Process(server.popen.pid).children()


def client_of(server: WebServer, number: int) -> httpx2.Client:
    """A client of one process alone."""
    paths = {each.laddr for each in psutil.Process(server.popen.pid).net_connections("unix")}
    (path,) = (path for path in paths if str(path).endswith(f"/{number}.sock"))
    return httpx2.Client(transport=httpx2.HTTPTransport(uds=path), base_url="http://localhost", timeout=60)


def connections(server: WebServer) -> list[int]:
    """How many each process has taken."""
    lines = [each.net_connections("tcp") for each in processes(server)]
    return [
        sum(line.status == psutil.CONN_ESTABLISHED and line.laddr.port == server.port for line in own) for own in lines
    ]


def figure(server: WebServer, name: str) -> float:
    lines = httpx2.get(f"{server.url}/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_two_processes_are_one_web_server(
    collection: Collection, ingest: Callable[..., Document], model: ModelServer, server: WebServer
) -> None:
    ingest(collection, "pump.md", "# Pump\n\nThe MX-9920-W is a pump. It weighs 3450 grams.")
    model.pieces, model.delay_seconds = ["The MX-9920-W weighs 3450 grams [1]. "] * 40, 0.5
    # Whoever forks has no threads: their locks would stay locked in the forks.
    assert psutil.Process(server.popen.pid).num_threads() == 1
    one, two = client_of(server, 0), client_of(server, 1)
    # A rush is dealt out: neither process takes all of it.
    with ExitStack() as lines:
        for _ in range(12):
            lines.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        wait_until(lambda: sum(connections(server)) == 12, what="the connections")
        assert min(connections(server)) >= 3
    # Many who search at once share a few connections.
    with ThreadPoolExecutor(8) as searchers:
        found = list(searchers.map(lambda _: one.post("/api/v1/search/", json={"query": "pump"}).json(), range(8)))
    assert [each["degraded"] for each in found] == [[]] * 8
    question = {"question": "How heavy is the MX-9920-W?", **ASKED}
    with ExitStack() as lines:
        first = events_of(lines.enter_context(two.stream("POST", "/api/v1/ask/", json=question)))
        begun = [next(first)[0] for _ in range(3)]
        # A reader whose line is lost goes on in the other process, with the next word.
        path = f"/api/v1/answers/{Answer.objects.get().pk}/stream/"
        followed = events_of_get(one, path, headers={"Last-Event-ID": begun[-1]})
        numbers = [int(event_id.split("-")[1]) for event_id in (*begun, next(followed)[0], next(followed)[0])]
        assert numbers == [1, 2, 3, 4, 5]
        followed.close()
        # One answer is written at once, one waits, and a third question is refused, whichever process they come to.
        second = events_of(lines.enter_context(one.stream("POST", "/api/v1/ask/", json=question)))
        assert next(second)[1:] == ("queued", {"place": 1})
        refused = one.post("/api/v1/ask/", json=question)
        assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (503, True)
        assert (figure(server, "ragsite_answers_in_writing"), figure(server, "ragsite_answers_in_queue")) == (1, 1)

        # The process that writes is killed: the one that waits in the other has its turn at once, and ends well.
        model.delay_seconds = 0.0
        busy = {int(each.pid) for each in processes(server)}
        writing = max(processes(server), key=lambda each: int(each.pid))
        writing.send_signal(signal.SIGKILL)
        heard = [(name, payload) for _id, name, payload in second]
    assert heard[0] == ("queued", {"place": 0})
    assert heard[-1][0] == "completed"
    assert "3450 grams [1]" in str(heard[-1][1]["answer"])
    wait_until(lambda: len(processes(server)) == 2, what="a new process")
    assert len(busy & {each.pid for each in processes(server)}) == 1
    # What the killed one had counted is not lost, and neither is the answer that it wrote: its reader comes back.
    assert figure(server, "ragsite_refused_questions_total") == 1
    assert sorted(Answer.objects.values_list("status", flat=True)) == ["completed", "generating"]
    lost = Answer.objects.get(status="generating")
    Answer.objects.filter(pk=lost.pk).update(heartbeat_at=lost.created_at)
    wait_until(lambda: client_answers(server, 1), what="the new process")
    taken_over = list(events_of_get(client_of(server, 1), f"/api/v1/answers/{lost.pk}/stream/"))
    assert taken_over[-1][1] == "completed"
    assert Answer.objects.filter(status="completed").count() == 2
    assert figure(server, "ragsite_answers_total") == 2

    # An answer of one process serves in the other, until a document changes.
    again = {**question, "stream": False, "anew": False}
    assert one.post("/api/v1/ask/", json=again).json()["answer"] == heard[-1][1]["answer"]
    assert figure(server, 'ragsite_answer_cache_total{outcome="hit"}') == 1
    ingest(collection, "pump.md", "# Pump\n\nThe MX-9920-W is a pump. It weighs 3500 grams.")
    client_of(server, 1).post("/api/v1/ask/", json=again)
    assert figure(server, 'ragsite_answer_cache_total{outcome="hit"}') == 1
    assert client_of(server, 1).post("/api/v1/ask/", json=again).status_code == 200
    # Told to end, it waits a little for its streams, and gives back what is not written by then.
    model.pieces, model.delay_seconds = [f"piece{n} " for n in range(400)], 0.1
    last, told = {**question, "question": "What does the MX-9920-W weigh, in grams?"}, []
    with contextlib.suppress(httpx2.HTTPError), one.stream("POST", "/api/v1/ask/", json=last) as response:
        for _id, name, _payload in events_of(response):
            told.append(name)
            if len(told) == 4:
                # Seven questions an hour, of both processes together.
                for each in (one, two):
                    assert "throttled" in each.post("/api/v1/ask/", json=again).text
                server.popen.send_signal(signal.SIGTERM)
    assert server.popen.wait(30) == 0
    assert set(told) == {"searched", "token"}
    left = Answer.objects.get(question=last["question"])
    assert (left.status, left.attempts, left.lease) == (Answer.Status.PENDING, 1, None)


def events_of_get(
    client: httpx2.Client, path: str, headers: dict[str, str] | None = None
) -> Generator[tuple[str, str, dict[str, object]]]:
    with client.stream("GET", path, headers=headers) as response:
        yield from events_of(response)


def client_answers(server: WebServer, number: int) -> bool:
    return client_of(server, number).get("/healthz").status_code == 200
