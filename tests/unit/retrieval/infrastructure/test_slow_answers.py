"""Every client of a model server ends a request within its time, however the server spends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from chat.answering.completion_client import CompletionClient, Request
from chat.exceptions import GenerationFailed
from evaluation.judges.judge_model import JudgeModel
from retrieval.exceptions import EmbeddingFailed, ModelFailed, RerankFailed
from retrieval.index.embedders.openai import OpenAICompatibleEmbedder
from retrieval.infrastructure.chat_model import ChatEndpoint, ChatModel
from retrieval.search.http_reranker import HttpReranker
from tests.support.dripping_server import DRIPS, dripping_server

SECONDS = 1.0


def rerank(url: str) -> object:
    return HttpReranker(url).score_texts("pump", ["a pump"], SECONDS)


def embed(url: str) -> object:
    return OpenAICompatibleEmbedder(url, "", "tiny", 3, query_timeout_seconds=SECONDS).embed_query("pump")


def reword(url: str) -> object:
    return ChatModel(url, "", "tiny", SECONDS).complete([{"role": "user", "content": "pump"}])


def judge(url: str) -> object:
    return JudgeModel(url, "", "tiny", SECONDS)._post({})


def write(url: str) -> object:
    async def first() -> object:
        client = CompletionClient(ChatEndpoint(url, "", "tiny"), silence_seconds=60)
        request = Request([], time.monotonic() + SECONDS, 10, offers_tables=False)
        return await anext(client.deltas(request))

    return asyncio.run(first())


# All but the last ask through one client.
WAYS = [*((ask, kind) for ask in (rerank, write) for kind in DRIPS), *((ask, "body") for ask in (embed, reword, judge))]


@pytest.mark.parametrize(("ask", "kind"), WAYS)
def test_a_request_is_over_in_its_time(ask: Callable[[str], object], kind: str) -> None:
    with dripping_server(kind, seconds=6) as url:
        started = time.monotonic()
        with pytest.raises((RerankFailed, EmbeddingFailed, ModelFailed, GenerationFailed)):
            ask(url)
        assert time.monotonic() - started < SECONDS + 1.5
