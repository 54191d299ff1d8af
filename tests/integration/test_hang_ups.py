"""Callers that hang up, at a real web server: what was begun for them ends within a second."""

import json
import socket
import time

import httpx2
import pytest

from bench import build_site_environment
from chat.models import Answer
from tests.integration.test_killed import events_of
from tests.support.libraries import library_of
from tests.support.model_server import model_server
from tests.support.site import WebServer, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "How heavy is the pump?"
# "Within a second", on a machine that runs other things beside.
PATIENCE_SECONDS = 4.0


@pytest.fixture(scope="module")
def model():
    with model_server() as state:
        state.pieces = [f"word{n} " for n in range(2000)]
        state.delay_seconds = 0.05
        yield state


@pytest.fixture(scope="module")
def server(model, django_db_setup, django_db_blocker, tmp_path_factory):
    log = tmp_path_factory.mktemp("hang-ups") / "web.log"
    started = WebServer(
        log,
        OPENAI_BASE_URL=model.url,
        OPENAI_MODEL="tiny",
        ANSWERS_AT_ONCE="1",
        **build_site_environment(ANSWER_CACHE_SECONDS=0, ANSWERS_WAITING=1),
    )
    yield started
    started.stop()


library = library_of({"pump.md": "# Pump\n\nThe pump weighs 3450 grams."})


def asking(server, path, body):
    """Open a connection, send the question, and do not read."""
    payload = json.dumps(body).encode()
    link = socket.create_connection(("127.0.0.1", server.port))
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    link.sendall(f"{head}Content-Length: {len(payload)}\r\n\r\n".encode() + payload)
    return link


COMPLETION = {"messages": [{"role": "user", "content": QUESTION}], "stream": True}


@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/v1/ask/", {"question": QUESTION}), ("/v1/chat/completions", COMPLETION)],
    ids=["ask", "streamed completion"],
)
def test_work_for_a_caller_who_cannot_come_back_ends_at_once(library, server, model, path, body):
    model.closed_early.clear()
    asked_before = len(model.requests)
    link = asking(server, path, body)
    wait_until(lambda: len(model.requests) > asked_before, what="the model to be asked")
    link.close()
    hung_up = time.monotonic()
    assert model.closed_early.wait(PATIENCE_SECONDS), "The model goes on writing for nobody."
    wait_until(lambda: Answer.objects.get().status == Answer.Status.STOPPED, PATIENCE_SECONDS, "the answer's end")
    assert time.monotonic() - hung_up < PATIENCE_SECONDS


def asked_and_hung_up(server):
    """Return the events and the headers of a question's stream, which breaks off when the answer has begun."""
    body, events = {"question": QUESTION, "stream": True}, []
    with httpx2.stream("POST", f"http://127.0.0.1:{server.port}/api/v1/ask/", json=body, timeout=60) as response:
        for event in events_of(response):
            events.append(event)
            if event[1] == "token":
                break
        return events, response.headers


def test_a_stream_that_broke_off_goes_on_and_is_stopped_by_its_first_event(library, server, model):
    events, headers = asked_and_hung_up(server)
    answer_id = events[0][2]["answer_id"]
    assert (answer_id, events[0][2]["conversation"]) == (headers["Answer-Id"], headers["Conversation-Id"])
    with httpx2.Client(base_url=f"http://127.0.0.1:{server.port}/api/v1/answers/{answer_id}/", timeout=60) as client:
        with client.stream("GET", "stream/", headers={"Last-Event-ID": events[-1][0]}) as response:
            rest = events_of(response)
            events.append(next(rest))
            assert client.post("stop/").status_code == 204
            events += rest
        saved = client.get("").json()
    assert (events[-1][1], saved["status"]) == ("completed", "stopped")
    said = "".join(payload["text"] for _, name, payload in events if name == "token")
    assert said.strip() == saved["answer"] == events[-1][2]["answer"]
    assert Answer.objects.get().attempts == 1
