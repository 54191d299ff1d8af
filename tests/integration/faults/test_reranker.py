"""A rerank server that errs, hangs, is slow, sends garbage or dies: the order of the search is kept."""

import time

import pytest
from asgiref.sync import sync_to_async

from chat.models import Answer
from chat.pages.turns import build_turn
from core import breaker
from retrieval import backends
from tests.support.faults import FAULTS, ask, counted
from tests.support.rerank_server import rerank_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(settings):
    with rerank_server() as state:
        settings.RERANKERS = {
            "http": {"BACKEND": "retrieval.search.ranking.http_reranker.HttpReranker", "OPTIONS": {"url": state.url}}
        }
        settings.RETRIEVAL_RERANKER = "http"
        yield state


def break_it(server, fault):
    server.delay_seconds, server.drip_seconds, server.dropped_connections, server.answers = 0.0, 0.0, 0, []
    match fault:
        case "error":
            server.answers = [(500, {}, b"out of memory")] * 9
        case "hang":
            server.delay_seconds = 3.0
        case "slow":
            server.delay_seconds = 0.05
        case "garbage":
            server.answers = [(200, {}, b"<html>")] * 9
        case "dies":
            server.dropped_connections = 9


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_first_look_stands_and_the_next_question_is_whole_again(library, server, fault):
    break_it(server, fault)
    failures = counted("ragsite_search_rerank_failures_total", reranker="http")
    answer, _events = await ask()
    assert answer.status == Answer.Status.COMPLETED
    assert "3450 grams" in answer.text
    if fault != "slow":
        assert answer.degraded == ["rerank"]
        assert "The reranker did not answer" in " ".join((await sync_to_async(build_turn)(answer)).notices)
        assert counted("ragsite_search_rerank_failures_total", reranker="http") == failures + 1
    break_it(server, "")
    assert (await ask())[0].degraded == []


async def test_one_that_goes_on_failing_is_left_alone_until_it_answers_again(library, server, monkeypatch):
    break_it(server, "error")
    for _ in range(breaker.FAILURES):
        await ask()
    asked = len(server.requests)
    answer, _events = await ask()
    assert len(server.requests) == asked
    assert answer.degraded == ["rerank"]
    assert "left alone" in answer.trace["rerank"]["error"]
    assert breaker.list_breaker_states()["reranker"] is breaker.BreakerState.OPEN
    break_it(server, "")
    reranker = backends.get_reranker("http")
    monkeypatch.setattr(reranker._breaker, "_clock", lambda: time.monotonic() + breaker.OPEN_SECONDS + 1)
    assert (await ask())[0].degraded == []
    assert breaker.list_breaker_states()["reranker"] is breaker.BreakerState.CLOSED
