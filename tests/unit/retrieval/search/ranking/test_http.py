"""The rerank endpoints of TEI, Jina, Cohere and vLLM, over real HTTP."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from retrieval.exceptions import RerankFailed
from retrieval.search.ranking import http_reranker
from retrieval.search.ranking.http_reranker import HttpReranker
from tests.support.rerank_server import overlap, rerank_server

KEY = "secret-0123456789"
QUERY = "wet pump"
TEXTS = ["a valve", "a wet pump", "a pump"]
SCORES = [0.0, 1.0, 0.5]
PATIENT = 10.0


@pytest.fixture
def server():
    with rerank_server() as state:
        yield state


def test_tei(server):
    assert HttpReranker(server.url).score_texts(QUERY, TEXTS, PATIENT) == SCORES
    assert server.paths == ["/rerank"]
    assert server.requests == [{"query": QUERY, "texts": TEXTS, "raw_scores": False, "truncate": True}]
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("api", "path", "special"),
    [
        ("jina", "/v1", {"return_documents": False}),
        ("cohere", "/v2/rerank", {}),
        ("vllm", "/v1/", {"truncate_prompt_tokens": -1}),
        ("auto", "/v1/rerank/", {}),
    ],
)
def test_jina_cohere_and_vllm(server, api, path, special):
    assert HttpReranker(server.url + path, KEY, "judge-2", api).score_texts(QUERY, TEXTS, PATIENT) == SCORES
    assert server.paths == [path.rstrip("/").removesuffix("/rerank") + "/rerank"]
    assert server.requests == [{"model": "judge-2", "query": QUERY, "documents": TEXTS, "top_n": 3, **special}]
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_many_passages_go_in_requests_of_what_the_server_takes(server):
    texts = [f"passage {number} of a pump" if number % 3 else "nothing" for number in range(50)]
    expected = [overlap(QUERY, text) for text in texts]
    assert HttpReranker(server.url).score_texts(QUERY, texts, PATIENT) == expected
    assert [len(request["texts"]) for request in server.requests] == [32, 18]
    assert HttpReranker(server.url, model="m").score_texts(QUERY, texts, PATIENT) == expected
    assert len(server.requests[2]["documents"]) == server.requests[2]["top_n"] == 50


def test_texts_that_servers_do_not_take(server):
    assert HttpReranker(server.url).score_texts("wet \ud800", ["", "wet \udfff"], PATIENT) == [0.0, 1.0]
    assert server.requests[0]["query"] == "wet ?"
    assert server.requests[0]["texts"] == [" ", "wet ?"]


def test_time_is_shared_by_all_requests(server, monkeypatch):
    monkeypatch.setattr(http_reranker, "TEI_BATCH", 1)
    server.delay_seconds = 1.2
    with pytest.raises(RerankFailed, match="it was late"):
        HttpReranker(server.url).score_texts(QUERY, TEXTS, 2.0)
    assert len(server.requests) == 2


def rows(**changes):
    good = [{"index": 0, "score": 0.1}, {"index": 1, "score": 0.2}, {"index": 2, "score": 0.3}]
    return [good[0] | changes, *good[1:]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\xff\xfe\x00", "not a rerank response"),
        (b"[" * 100_000, "not a rerank response"),
        ({"error": "no model"}, "not a rerank response"),
        (None, "not a rerank response"),
        ([{"index": 0}], "not a rerank response"),
        (rows()[:2], "the 2 scores that came back are not those of the 3 passages sent"),
        ([*rows(), {"index": 3, "score": 1}], "the 4 scores that came back are not those of the 3 passages sent"),
        (rows(index=-1), "not those of the 3 passages sent"),
        (rows(index="0"), "not those of the 3 passages sent"),
        (rows(index=2), "not those of the 3 passages sent"),
        (rows(score=float("nan")), "not a finite number"),
        (rows(score=10**400), "not a finite number"),
        (rows(score="0.5"), "not a finite number"),
        (rows(score=True), "not a finite number"),
    ],
)
def test_answers_that_are_none(server, content, complaint):
    server.answers = [(200, {}, content)]
    with pytest.raises(RerankFailed, match=rf"127\.0\.0\.1 gave no scores: .*{complaint}\.$"):
        HttpReranker(server.url).score_texts(QUERY, TEXTS, PATIENT)


def test_an_endless_answer_is_not_read(server, monkeypatch):
    monkeypatch.setattr(http_reranker, "LARGEST_ANSWER_BYTES", 1000)
    server.answers = [(200, {}, b" " * 100_000)]
    with pytest.raises(RerankFailed, match="longer than 1000 bytes"):
        HttpReranker(server.url).score_texts(QUERY, TEXTS, PATIENT)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"url": ""}, "URL of the reranker"),
        ({"url": "localhost:8080"}, "URL of the reranker"),
        ({"url": "ftp://host/rerank"}, "URL of the reranker"),
        ({"url": f"http://me:{KEY}@host"}, "URL of the reranker"),
        ({"url": f"http://host/rerank?key={KEY}"}, "URL of the reranker"),
        ({"url": "http://host", "api_key": f"{KEY}é"}, "API key"),
        ({"url": "http://host", "api": "magic"}, "one of auto, tei, jina, cohere, vllm, not 'magic'"),
        ({"url": "http://host", "api": "jina"}, "jina needs the name of a model"),
        ({"url": "http://host", "api": "cohere"}, "cohere needs the name of a model"),
    ],
)
def test_what_cannot_work_is_refused_at_once(arguments, complaint):
    with pytest.raises(ImproperlyConfigured, match=complaint) as caught:
        HttpReranker(**arguments)
    assert KEY not in str(caught.value)
