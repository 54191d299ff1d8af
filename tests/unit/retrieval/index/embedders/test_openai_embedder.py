import json
import logging
import socket
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from core import deadline
from retrieval.exceptions import EmbedderMisconfigured, EmbeddingFailed
from retrieval.index.embedders import openai
from retrieval.index.embedders.openai import OpenAICompatibleEmbedder
from tests.support.serving import QuietHandler, serving

Answer = tuple[int, dict[str, str], object]

KEY = "sk-secret-012345wxyz"


@dataclass
class EmbeddingServer:
    """Speaks `POST /v1/embeddings`: the vector of a text is [its length + 1, 0, 2].

    ``answers`` are given first, one a request; each is (status, headers, JSON or bytes) or a function of the request
    body that returns one.
    """

    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    answers: list[Answer | Callable[[dict[str, Any]], Answer]] = field(default_factory=list)
    base_url: str = ""


class Repeated(list):
    """The same answer to every request."""

    def pop(self, _index):
        return self[0]

    def __init__(self, answer):
        super().__init__([answer])


def rows(body):
    return [
        {"object": "embedding", "index": index, "embedding": [len(text) + 1, 0, 2]}
        for index, text in enumerate(body["input"])
    ]


def embeddings(body):
    return 200, {}, {"object": "list", "data": rows(body), "model": body["model"]}


def with_vector(vector):
    return lambda body: (200, {}, {"data": [{**row, "embedding": vector} for row in rows(body)]})


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(openai, "PAUSE_SECONDS", 0.01)
    state = EmbeddingServer()

    class Request(QuietHandler):
        def do_POST(self):
            body = self.read_json()
            state.requests.append((self.path, dict(self.headers), body))
            answer = state.answers.pop(0) if state.answers else embeddings
            status, headers, content = answer(body) if callable(answer) else answer
            payload = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send(payload, status, **{name.replace("-", "_"): value for name, value in headers.items()})

    with serving(Request) as url:
        state.base_url = f"{url}/v1"
        yield state


def embedder_of(base_url, **changes):
    arguments = {"api_key": KEY, "model": "small", "dimension": 3, "timeout_seconds": 5}
    return OpenAICompatibleEmbedder(base_url, **{**arguments, **changes})


def expected(texts):
    vectors = np.array([[len(text) + 1, 0, 2] for text in texts], np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_query_is_a_unit_vector(server):
    vector = embedder_of(server.base_url + "/").embed_query("hello")
    assert (vector.shape, vector.dtype) == ((3,), np.float32)
    np.testing.assert_allclose(vector, expected(["hello"])[0], atol=1e-7)
    path, headers, body = server.requests[0]
    assert path == "/v1/embeddings"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body == {"model": "small", "input": ["hello"]}


def test_documents_are_sent_in_batches_and_keep_their_order(server, monkeypatch):
    monkeypatch.setattr(openai, "BATCH_SIZE", 2)
    texts = ["x" * length for length in (5, 1, 9, 3, 7)]
    np.testing.assert_allclose(embedder_of(server.base_url).embed_documents(texts), expected(texts), atol=1e-7)
    assert [body["input"] for _, _, body in server.requests] == [texts[:2], texts[2:4], texts[4:]]


@pytest.mark.parametrize("index", [None, 0])
def test_rows_without_an_index_of_their_own_are_in_the_order_of_the_texts(server, index):
    texts = ["x" * length for length in (5, 1, 9)]
    own = {} if index is None else {"index": index}
    server.answers = [lambda body: (200, {}, {"data": [{"embedding": row["embedding"], **own} for row in rows(body)]})]
    np.testing.assert_allclose(embedder_of(server.base_url).embed_documents(texts), expected(texts), atol=1e-7)


def takes_at_most(number, status):
    return lambda body: embeddings(body) if len(body["input"]) <= number else (status, {}, {"error": "batch size"})


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("most", [32, 10, 1])
@pytest.mark.parametrize("is_for_reader", [False, True])
def test_a_server_that_takes_fewer_texts_gets_smaller_batches_and_this_is_remembered(
    server, status, most, is_for_reader, caplog
):
    server.answers = Repeated(takes_at_most(most, status))
    embedder, texts = embedder_of(server.base_url, query_timeout_seconds=60), ["x" * length for length in range(1, 71)]
    for _ in range(2):
        server.requests.clear()
        with deadline.limit_time(60) if is_for_reader else nullcontext():
            np.testing.assert_allclose(embedder.embed_documents(texts), expected(texts), atol=1e-7)
    sizes = [len(body["input"]) for _, _, body in server.requests]
    assert max(sizes) <= most < 2 * max(sizes)
    assert caplog.messages[-1] == f"127.0.0.1 refused {2 * max(sizes)} texts at once: it is sent fewer."


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_that_is_refused_alone_makes_no_batch_smaller(server, status):
    refuses = {"error": "too long"}
    server.answers = Repeated(lambda body: (status, {}, refuses) if "long" in body["input"] else embeddings(body))
    embedder = embedder_of(server.base_url)
    with pytest.raises(EmbeddingFailed, match=f"HTTP {status}"):
        embedder.embed_documents([*["short"] * 40, "long", *["short"] * 40])
    server.requests.clear()
    embedder.embed_documents(["short"] * 80)
    assert [len(body["input"]) for _, _, body in server.requests] == [64, 16]


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_other_refusals_are_not_of_the_number(server, status, monkeypatch):
    monkeypatch.setattr(openai, "DOCUMENT_ATTEMPTS", 1)
    server.answers = Repeated(takes_at_most(1, status))
    with pytest.raises(EmbeddingFailed):
        embedder_of(server.base_url).embed_documents(["hello"] * 8)
    assert len(server.requests) == 1


def test_a_passing_refusal_is_retried(server, caplog):
    server.answers += [(status, {}, {"error": "busy"}) for status in (429, 500, 503)]
    with caplog.at_level(logging.WARNING):
        vectors = embedder_of(server.base_url).embed_documents(["hello"])
    np.testing.assert_allclose(vectors, expected(["hello"]), atol=1e-7)
    assert len(server.requests) == 4
    assert len(caplog.messages) == 3


def test_attempts_are_bounded_and_fewer_for_a_query(server):
    server.answers += [(503, {}, b"")] * 20
    with pytest.raises(EmbeddingFailed, match=r"127.0.0.1 .* small: it answered HTTP 503, 4 times in a row\.$"):
        embedder_of(server.base_url).embed_documents(["hello"])
    assert len(server.requests) == 4
    with pytest.raises(EmbeddingFailed, match="2 times in a row"):
        embedder_of(server.base_url).embed_query("hello")
    assert len(server.requests) == 6


def test_pauses_grow_and_heed_the_server(server, monkeypatch):
    monkeypatch.setattr(openai, "PAUSE_SECONDS", 0.2)
    server.answers += [(429, {"Retry-After": "0.4"}, b""), (429, {"Retry-After": "soon"}, b"")]
    pauses = []
    monkeypatch.setattr("core.model_server.time.sleep", pauses.append)
    embedder_of(server.base_url).embed_documents(["hello"])
    # The server asks for 0.4 s; without a number the pause is between half and the whole of 0.2 s * 2.
    assert pauses[0] == pytest.approx(0.4)
    assert 0.2 <= pauses[1] <= 0.4


@pytest.mark.parametrize("status", [302, 400, 404, 413])
def test_a_final_refusal_is_not_retried_and_says_why(server, status):
    server.answers.append((status, {"Location": "http://127.0.0.1:9/"}, {"error": "no such\n model"}))
    with pytest.raises(EmbeddingFailed, match=rf'HTTP {status}: "{{"error": "no such\\n model"}}"'):
        embedder_of(server.base_url).embed_query("hello")
    assert len(server.requests) == 1


def test_an_unreachable_server_is_tried_again_then_reported():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(EmbeddingFailed, match=r"could not be reached \(ConnectError\), 4 times in a row"):
        embedder_of(f"http://127.0.0.1:{port}/v1").embed_documents(["hello"])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {}, b"\xff\xfe\x00"), "does not hold a list"),
        ((200, {}, {"data": [{"embedding": [1, 0, 2]}]}), "does not hold a list"),
        ((200, {}, {"data": []}), "does not hold a list"),
        (lambda body: (200, {}, {"data": rows(body) + rows(body)[:1]}), "2 texts were sent and 3 vectors"),
        (
            lambda body: (200, {}, {"data": [{**row, "index": row["index"] + 1} for row in rows(body)]}),
            "does not hold a list",
        ),
        (with_vector([1, 2]), "have 2 numbers and 3 are configured"),
        (with_vector([1, 2, float("nan")]), "zero or not finite"),
        (with_vector([0, 0, 0]), "zero or not finite"),
        (with_vector([1, None, "x"]), "does not hold a list"),
        (with_vector([[1, 0, 2]]), "have no numbers"),
        ((200, {"Content-Encoding": "gzip"}, b"not gzip"), "could not be read"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(server, answer, message):
    server.answers.append(answer)
    with pytest.raises(EmbeddingFailed, match=message):
        embedder_of(server.base_url).embed_documents(["one", "two"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (401, {}, {"error": f"Incorrect API key provided: {KEY}"}),
        (400, {}, {"error": f"bad header Bearer {KEY}"}),
        (200, {}, KEY.encode()),
    ],
)
def test_the_key_is_never_told(server, answer, caplog):
    server.answers += [answer] * 2
    embedder = embedder_of(server.base_url)
    with caplog.at_level(logging.DEBUG), pytest.raises(EmbeddingFailed) as caught:
        embedder.embed_query("hello")
    told = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(embedder)
    assert KEY not in told
    assert KEY[-4:] not in told


@pytest.mark.parametrize("base_url", ["", "example.org/v1", "ftp://example.org", "http://", "http://[::1"])
def test_an_impossible_address_is_refused(base_url):
    with pytest.raises(EmbedderMisconfigured, match="base URL"):
        embedder_of(base_url)


def test_tokens_are_estimated_without_a_request(server):
    texts = ["", "the cat", "unbelievable", "2026-11-20", "数据库", "f(x) = 1"]
    assert embedder_of(server.base_url).count_tokens(texts) == [0, 2, 3, 6, 3, 6]
    assert server.requests == []


def test_a_password_in_the_address_is_not_told(server):
    server.answers.append((404, {}, b""))
    with pytest.raises(EmbeddingFailed) as caught:
        embedder_of(server.base_url.replace("//", "//me:hunter2@"), api_key="").embed_query("hello")
    assert "hunter2" not in str(caught.value)


def test_a_forked_child_uses_connections_of_its_own(server, monkeypatch):
    embedder = embedder_of(server.base_url)
    embedder.embed_query("hello")
    parent = embedder._server._open_client()
    assert embedder._server._open_client() is parent
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert embedder._server._open_client() is not parent
