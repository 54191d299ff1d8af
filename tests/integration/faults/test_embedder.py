"""An embedding server that errs, hangs, is slow, sends garbage or dies: keywords serve, and a notice says so."""

import json
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import pytest
from asgiref.sync import sync_to_async

from chat.models import Answer
from chat.pages.turns import build_turn
from core import breaker
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import clear_query_vector_cache
from retrieval.index.embedders import openai
from tests.support.asking import PUMP
from tests.support.faults import FAULTS, ask, counted, short_times
from tests.support.serving import QuietHandler, serving

# A small embedding server over real HTTP whose vectors are counts of words, and which fails as a test sets.


DIMENSION = 64


def vector_of(text):
    """Texts that share words have vectors that are close."""
    vector = [0.01] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        vector[crc32(word.encode()) % DIMENSION] += 1.0
    return vector


@dataclass
class EmbeddingServer:
    """``fault`` is one of error, hang, slow, garbage, dies; empty for none.

    A hanging request resumes after ``released``.
    """

    fault: str = ""
    slow_seconds: float = 0.05
    requests: list[dict[str, Any]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""


@contextmanager
def embedding_server():
    state = EmbeddingServer()

    class Request(QuietHandler):
        def do_POST(self):
            body = self.read_json()
            state.requests.append(body)
            rows = [{"index": number, "embedding": vector_of(text)} for number, text in enumerate(body["input"])]
            payload = json.dumps({"data": rows}).encode()
            if state.fault == "hang":
                state.released.wait(60)
            elif state.fault == "slow":
                threading.Event().wait(state.slow_seconds)
            elif state.fault == "garbage":
                payload = b"<html>Bad gateway</html>"
            sent = payload[: len(payload) // 2] if state.fault == "dies" else payload
            self.send(sent, 500 if state.fault == "error" else 200, Content_Length=str(len(payload)))

    with serving(Request) as url:
        state.url = f"{url}/v1"
        try:
            yield state
        finally:
            state.released.set()


pytestmark = pytest.mark.django_db(transaction=True)

QUERY_SECONDS = 0.4


@pytest.fixture
def server(settings, monkeypatch):
    monkeypatch.setattr(openai, "PAUSE_SECONDS", 0.01)
    short_times(settings)
    with embedding_server() as state:
        options = {"base_url": state.url, "api_key": "", "model": "words", "dimension": DIMENSION}
        options |= {"query_timeout_seconds": QUERY_SECONDS}
        settings.EMBEDDER = {"BACKEND": "retrieval.index.embedders.openai.OpenAICompatibleEmbedder", "OPTIONS": options}
        settings.RETRIEVAL_RERANKER = "none"
        clear_query_vector_cache()
        yield state


@pytest.fixture
def library(server, collection, ingest):
    ingest(collection, "pump.md", PUMP)
    server.requests.clear()
    return collection


def the_breaker():
    return embedder_choice.get_embedder()._breaker


@pytest.mark.parametrize("fault", FAULTS)
async def test_keywords_serve_and_the_next_question_is_whole_again(library, server, fault):
    failures = counted("ragsite_search_leg_failures_total", leg="vector")
    server.fault = fault
    answer, events = await ask()
    assert answer.status == Answer.Status.COMPLETED
    assert "3450 grams" in answer.text
    if fault == "slow":
        assert answer.degraded == []
    else:
        assert answer.degraded == events[-1].payload["degraded"] == ["vector"]
        assert "found by their words alone" in " ".join((await sync_to_async(build_turn)(answer)).notices)
        assert counted("ragsite_search_leg_failures_total", leg="vector") == failures + 1
    # Not again for the evidence, nor for checking the answer; what does not hang is tried twice.
    assert fault == "slow" or len(server.requests) == (1 if fault in ("hang", "garbage") else 2)
    server.fault = ""
    server.released.set()
    answer, _events = await ask("How heavy is the MX-9920-W pump?")
    assert "3450 grams" in answer.text
    assert answer.degraded == []


async def test_a_server_that_goes_on_hanging_costs_nothing_until_it_answers_again(library, server, monkeypatch):
    server.fault = "hang"
    for number in range(breaker.FAILURES):
        await ask(f"How heavy is the MX-9920-W, {number}?")
    assert len(server.requests) == breaker.FAILURES
    assert breaker.list_breaker_states()["embedder"] is breaker.BreakerState.OPEN
    assert counted("ragsite_breaker_open", part="embedder") == 1
    started = time.monotonic()
    answer, _events = await ask("What does the MX-9920-W weigh?")
    taken_seconds = time.monotonic() - started
    assert len(server.requests) == breaker.FAILURES
    assert answer.degraded == ["vector"]
    assert "3450 grams" in answer.text
    retrievers = {retriever["leg"]: retriever for retriever in answer.trace["legs"]}
    assert "left alone" in retrievers["vector"]["error"]
    assert retrievers["vector"]["milliseconds"] < QUERY_SECONDS * 1000, taken_seconds

    server.fault = ""
    server.released.set()
    monkeypatch.setattr(the_breaker(), "_clock", lambda: time.monotonic() + breaker.OPEN_SECONDS + 1)
    answer, _events = await ask("And what is the weight of the MX-9920-W?")
    assert answer.degraded == []
    assert breaker.list_breaker_states()["embedder"] is breaker.BreakerState.CLOSED
    assert counted("ragsite_breaker_open", part="embedder") == 0


def test_a_document_may_take_longer_than_a_question(server):
    server.fault, server.slow_seconds = "slow", 2 * QUERY_SECONDS
    assert embedder_choice.get_embedder().embed_documents(["The pump weighs 3450 grams."]).shape == (1, DIMENSION)
    assert breaker.list_breaker_states()["embedder"] is breaker.BreakerState.CLOSED
