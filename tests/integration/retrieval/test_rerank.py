"""Rerankers in a real search: what they read, what they change, and what happens when they do not answer."""

import json
import logging
import threading
from dataclasses import replace

import pytest
from django.core.checks import run_checks

from core.dataclass_json import to_json
from retrieval import backends
from retrieval.exceptions import RerankFailed
from retrieval.metrics import RERANK_FAILURES
from retrieval.models import Chunk
from retrieval.profile_settings import ProfileSettings
from retrieval.protocols import Reranker
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.passage_rows import load_chunk_texts
from retrieval.search.pipeline import search
from retrieval.search.ranking import reranking
from retrieval.search.trace import StageStatus
from retrieval.types import SearchMethod
from tests.support.fresh_settings import fresh_settings
from tests.support.libraries import library_of
from tests.support.local_models import write_overlap_model
from tests.support.rerank_server import rerank_server

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "wet pump"
TEXTS = {
    "first.md": "# Pumps\n\n## Weights\n\nThe wet pump weighs 3450 grams.",
    "second.md": "# Valves\n\nA valve for a pump closes slowly. Valves, valves, valves.",
    "third.md": "# Hours\n\nThe valve shop is open until five.",
}


# All other effects of a profile on the order are off, whatever its defaults are.
PLAIN = ProfileSettings(method=SearchMethod.ZSCORE, reformulate=False, reranker="none")


IDENTITY = {"sentence_transformers": {"activation_fn": "torch.nn.Identity"}}


class Tested(Reranker):
    __test__ = False


class Failing(Tested):
    def score(self, query, chunk_ids, timeout_seconds):
        raise RerankFailed("The rerank server secret-host gave no scores: it was late.")


class Buggy(Tested):
    def score(self, query, chunk_ids, timeout_seconds):
        raise RuntimeError("secret-host: index out of range")


class Silent(Tested):
    def score(self, query, chunk_ids, timeout_seconds):
        return {}


class Hanging(Tested):
    released = threading.Event()

    def score(self, query, chunk_ids, timeout_seconds):
        self.released.wait(60)
        return dict.fromkeys(chunk_ids, 1.0)


library = library_of(TEXTS)


@pytest.fixture
def server():
    with rerank_server() as state:
        yield state


def configure(settings, name, backend, **options):
    settings.RERANKERS = {name: {"BACKEND": backend, "OPTIONS": options}}


def reranked(question=QUESTION, *, name="tested", **profile):
    return search(question, build_unrestricted_filters(), profile=replace(PLAIN, reranker=name, **profile))


def sources(result):
    return [hit.passage.source for hit in result.hits]


def test_a_cross_encoder_changes_the_order(library, settings, tmp_path):
    # The reranker counts valves, and all texts have the question's word equally: its favourite was last.
    configure(
        settings,
        "tested",
        "retrieval.search.ranking.cross_encoder.CrossEncoder",
        model=str(write_overlap_model(tmp_path / "overlap", ["valve"], **IDENTITY)),
    )
    question = "How much does a wet pump weigh? Not a valve."
    fused = search(question, build_unrestricted_filters(), method=SearchMethod.ZSCORE)
    assert sources(fused)[0] == "first.md"
    alone = reranked(question, rerank_weight=None)
    assert (alone.trace.rerank.status, alone.trace.rerank.judged) == (StageStatus.OK, 3)
    assert {hit.passage.source: hit.score for hit in alone.hits} == {"first.md": 0, "second.md": 1, "third.md": 1}
    assert sources(alone)[-1] == "first.md"
    added = reranked(question, rerank_weight=10.0)
    assert sources(added)[-1] == "first.md"
    assert sources(reranked(question, rerank_weight=0.0)) == sources(fused)
    assert alone.trace.degraded == added.trace.degraded == ()
    assert "rerank" in added.trace.timings_ms


def test_a_server_reads_what_was_written(library, settings, server):
    configure(settings, "tested", "retrieval.search.ranking.http_reranker.HttpReranker", url=server.url)
    result = reranked(rerank_weight=None)
    (request,) = server.requests
    assert request["query"] == QUESTION
    assert len(request["texts"]) == 3
    first = next(text for text in request["texts"] if "3450" in text)
    assert first.startswith("Pumps\nWeights\n")
    assert "The wet pump weighs 3450 grams." in first
    assert {hit.passage.source: hit.score for hit in result.hits} == {"first.md": 1, "second.md": 0.5, "third.md": 0}
    assert [hit.candidate.rerank.score for hit in result.hits if hit.candidate.rerank] == [1, 0.5, 0]


def test_the_threshold_is_for_the_score_after_reranking(library, settings, server):
    configure(settings, "tested", "retrieval.search.ranking.http_reranker.HttpReranker", url=server.url)
    result = reranked(rerank_weight=None, score_threshold=0.4)
    assert sources(result) == ["first.md", "second.md"]
    assert len(server.requests[0]["texts"]) == 3
    assert result.trace.candidates[2].dropped == "score below the threshold of 0.4"


@pytest.mark.parametrize(
    ("backend", "status", "error"),
    [
        ("Failing", StageStatus.FAILED, "The rerank server secret-host gave no scores: it was late."),
        ("Buggy", StageStatus.FAILED, "RuntimeError: secret-host: index out of range"),
        ("Silent", StageStatus.FAILED, "It judged none of the candidates."),
        ("Hanging", StageStatus.LATE, "No answer within 0.2 s."),
        ("", StageStatus.FAILED, "RERANKERS has no 'tested': it has none."),
    ],
)
def test_without_an_answer_the_fused_order_stands_and_it_is_announced(
    library, settings, monkeypatch, caplog, backend, status, error
):
    if backend:
        configure(settings, "tested", f"{__name__}.{backend}")
    else:
        settings.RERANKERS = {}
    monkeypatch.setattr(reranking, "DEADLINE_GRACE_SECONDS", 0.0 if backend == "Hanging" else 0.5)
    fused = search(QUESTION, build_unrestricted_filters(), profile=PLAIN)
    before = RERANK_FAILURES.labels(reranker="tested")._value.get()
    Hanging.released.clear()
    with caplog.at_level(logging.WARNING):
        result = reranked(rerank_timeout_seconds=0.2)
    Hanging.released.set()
    assert [(hit.passage.chunk_id, hit.score) for hit in result.hits] == [
        (hit.passage.chunk_id, hit.score) for hit in fused.hits
    ]
    assert all(hit.candidate.rerank is None for hit in result.hits)
    trace = result.trace.rerank
    assert (trace.reranker, trace.status, trace.judged, trace.error) == ("tested", status, 0, error)
    assert result.trace.degraded == ("rerank",)
    assert RERANK_FAILURES.labels(reranker="tested")._value.get() == before + 1
    assert f"The reranker tested did not answer, the fused order is kept: {error}" in caplog.text
    visible = result.trace.copy_without_errors()
    assert visible.rerank.status is status
    assert "secret-host" not in json.dumps(to_json(visible))


def test_a_reranker_asked_for_by_name_serves_a_published_method(library, settings, server):
    configure(settings, "tested", "retrieval.search.ranking.http_reranker.HttpReranker", url=server.url)
    settings.RETRIEVAL_RERANKER = "tested"
    assert search(QUESTION, build_unrestricted_filters(), method=SearchMethod.RRF).trace.rerank is None
    assert search(QUESTION, build_unrestricted_filters(), reranker="none").trace.rerank is None
    assert server.requests == []
    for result in (
        search(QUESTION, build_unrestricted_filters()),
        search(QUESTION, build_unrestricted_filters(), method=SearchMethod.RRF, reranker="tested"),
    ):
        assert result.trace.rerank.status is StageStatus.OK


def test_texts_are_read_in_one_query(library, ingest, django_assert_num_queries):
    ids = [*Chunk.objects.order_by("-pk").values_list("pk", flat=True)]
    with django_assert_num_queries(1):
        texts = load_chunk_texts([*ids, 10**9])
    assert [*texts] == ids
    chunk = Chunk.objects.get(pk=ids[0])
    assert texts[chunk.pk] == f"Hours\n{chunk.content}"
    Chunk.objects.filter(pk=chunk.pk).update(heading_path=["Hours", "Shop"])
    assert load_chunk_texts([chunk.pk]) == {chunk.pk: f"Hours\nShop\n{chunk.content}"}


def errors():
    return [str(message.msg) for message in run_checks() if str(message.id) in ("retrieval.E005", "retrieval.E006")]


def test_a_misspelt_reranker_is_found_at_start(settings):
    assert errors() == []
    settings.RERANKERS = {
        "http": {"BACKEND": "retrieval.search.ranking.http_reranker.HttpReranker", "OPTIONS": {"url": "localhost"}}
    }
    assert errors() == [
        'Reranker http: The URL of the reranker must look like "http://host:8080" or "https://host/v1/rerank".'
    ]
    settings.RERANKERS = {"none": {"BACKEND": "retrieval.search.https.HttpReranker"}}
    assert errors() == [
        "RERANKERS has a 'none', which is the name of no reranker.",
        "Reranker none: RERANKERS names a backend that cannot be made: No module named 'retrieval.search.https'",
    ]


def test_a_reranker_is_described_by_the_environment(settings):
    found = fresh_settings(RERANK_MODEL="someone/reranker", RERANK_URL="http://localhost:8080", RERANK_API_KEY="key")
    assert list(found.RERANKERS) == ["http"]
    settings.RERANKERS = found.RERANKERS
    http = backends.get_reranker("http")
    assert (http._server.url, http.model, http._server._api_key) == (
        "http://localhost:8080/rerank",
        "someone/reranker",
        "key",
    )
