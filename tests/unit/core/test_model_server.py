"""Requests to model servers end in their time, however the server spends it, and their errors quote no request."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager, suppress

import httpx2
import pytest

from core import deadline
from core.exceptions import ModelFailed
from core.http_client import build_bounded_client
from core.language_model.chat_model import ChatEndpoint, ChatModel
from core.language_model.completion_client import CompletionClient, Request
from core.model_server import LEFT_OUT, hide_texts_of_request
from evaluation.judges.judge_model import JudgeModel
from retrieval.exceptions import EmbeddingFailed, RerankFailed
from retrieval.index.embedders.openai import OpenAICompatibleEmbedder
from retrieval.search.ranking.http_reranker import HttpReranker

SECONDS = 0.6
_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
# Each kind has the bytes sent at once, and the bytes then sent repeatedly.
DRIPS = {
    "headers": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "chunk extension": (_CHUNKED + b"\r\n1;name=", b"x"),
    "empty gzip": (_CHUNKED + b"Content-Encoding: gzip\r\n\r\na\r\n\x1f\x8b\x08\x08\0\0\0\0\0\x03\r\n", b"1\r\nx\r\n"),
    "body": (_CHUNKED + b"\r\n", b"1\r\n \r\n"),
}


@contextmanager
def dripping_server(kind, seconds):
    """Yield the address of a server that sends a byte now and then, for ``seconds`` unless the caller leaves."""
    listener = socket.create_server(("127.0.0.1", 0))

    def drip(connection):
        head, piece = DRIPS[kind]
        ends_at = time.monotonic() + seconds
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            while time.monotonic() < ends_at:
                connection.sendall(piece)
                time.sleep(0.1)

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def rerank(url):
    return HttpReranker(url).score_texts("pump", ["a pump"], SECONDS)


def embed(url):
    return OpenAICompatibleEmbedder(url, "", "tiny", 3, query_timeout_seconds=SECONDS).embed_query("pump")


def reword(url):
    return ChatModel(url, "", "tiny", SECONDS).complete([{"role": "user", "content": "pump"}])


def judge(url):
    return JudgeModel(url, "", "tiny", SECONDS).reply([], 10)


def write(url):
    async def first():
        client = CompletionClient(ChatEndpoint(url, "", "tiny"), silence_seconds=60)
        return await anext(client.stream_deltas(Request([], time.monotonic() + SECONDS, 10)))

    return asyncio.run(first())


# All but the last ask through one client.
WAYS = [*((ask, kind) for ask in (rerank, write) for kind in DRIPS), *((ask, "body") for ask in (embed, reword, judge))]


@pytest.mark.parametrize(("ask", "kind"), WAYS)
def test_a_request_is_over_in_its_time(ask, kind):
    with dripping_server(kind, seconds=6) as url:
        started = time.monotonic()
        with pytest.raises((RerankFailed, EmbeddingFailed, ModelFailed)):
            ask(url)
        assert time.monotonic() - started < SECONDS + 1.5


def test_a_server_that_reads_slowly_is_left_in_time():
    def read(listener):
        connection, _ = listener.accept()
        with connection:
            # Each write takes less than its time, all of them 15 s.
            while connection.recv(60_000):
                time.sleep(0.03)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=read, args=(listener,), daemon=True).start()
        started = time.monotonic()
        with deadline.limit_time(1), build_bounded_client() as client, pytest.raises(httpx2.TimeoutException):
            client.post(f"http://127.0.0.1:{listener.getsockname()[1]}", content=bytes(30_000_000), timeout=1)
        assert time.monotonic() - started < 3


def test_a_proxy_that_the_environment_names_is_asked_and_bounded(monkeypatch):
    with dripping_server("headers", seconds=6) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        started = time.monotonic()
        with deadline.limit_time(0.5), build_bounded_client() as client, pytest.raises(httpx2.ReadTimeout):
            client.get("http://models.example/v1", timeout=1)
        assert 0.4 < time.monotonic() - started < 2.5


def test_without_a_limit_each_read_has_its_own_time():
    with dripping_server("body", seconds=0.7) as url, build_bounded_client() as client:
        with pytest.raises(httpx2.RemoteProtocolError):  # it broke off
            client.get(url, timeout=0.5)


BODY = {"model": "tiny", "messages": [{"role": "user", "content": "How heavy is\nthe MX-9920-W pump, in grams?"}]}


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ("model tiny is not loaded, try again", True),
        ("", True),
        ("the pump is busy", True),
        ('{"input": "HOW HEAVY IS THE mx-9920-w"}', False),
        ("bad text: the MX-9920-W pump", False),
    ],
)
def test_what_quotes_the_request_is_left_out(said, is_kept):
    assert hide_texts_of_request(said, BODY) == (said if is_kept else LEFT_OUT)
