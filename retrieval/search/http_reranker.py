"""Reranking by a server: Text Embeddings Inference, vLLM, Jina, Cohere, and servers with one of their protocols."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from retrieval.exceptions import RerankFailed, RerankLate
from retrieval.index.embedders.session import well_formed
from retrieval.infrastructure.breaker import Breaker, Open
from retrieval.infrastructure.model_server import ModelServer, ServerFailed, ServerLate, parsed_url
from retrieval.protocols import Reranker
from retrieval.search.passage_rows import load_texts

PAUSE_SECONDS = 0.1
LARGEST_ANSWER_BYTES = 8 * 2**20
"""Servers send the passages back, some unasked: 100 of them take less than a tenth of this."""

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Protocol:
    """One form of the rerank request and its answer. ``batch_size`` is what such servers take as they are shipped."""

    request: Callable[[str, str, Sequence[str]], Body]
    rows: Callable[[Any], Any]
    score: str
    batch_size: int


def _tei(model: str, query: str, texts: Sequence[str]) -> Body:
    return {"query": query, "texts": list(texts), "raw_scores": False, "truncate": True}


def _cohere(model: str, query: str, texts: Sequence[str]) -> Body:
    body: Body = {"query": query, "documents": list(texts), "top_n": len(texts)}
    return {"model": model} | body if model else body


def _jina(model: str, query: str, texts: Sequence[str]) -> Body:
    return _cohere(model, query, texts) | {"return_documents": False}


def _vllm(model: str, query: str, texts: Sequence[str]) -> Body:
    # It refuses what is too long unless told to cut; -1 stands for the model's own limit.
    return _cohere(model, query, texts) | {"truncate_prompt_tokens": -1}


def _results(answer: Any) -> Any:
    return answer["results"]


PROTOCOLS: Mapping[str, Protocol] = {
    "tei": Protocol(_tei, lambda answer: answer, "score", 32),
    "jina": Protocol(_jina, _results, "relevance_score", 100),
    "cohere": Protocol(_cohere, _results, "relevance_score", 100),
    "vllm": Protocol(_vllm, _results, "relevance_score", 100),
}
AUTO = "auto"


class HttpReranker(Reranker):
    """A reranker whose model runs on a server. Instances may be shared by threads and survive a fork.

    ``url`` is the server's base URL, or the whole address ending in ``/rerank``. With ``api`` "auto", TEI's protocol is
    used if no ``model`` is named, else Cohere's, which the others understand. Every passage is scored, in requests of
    ``batch_size`` one after the other. Scores are the server's, usually from 0 to 1.

    Raises: ImproperlyConfigured if an argument cannot work.
    """

    def __init__(
        self, url: str, api_key: str = "", model: str = "", api: str = AUTO, batch_size: int | None = None
    ) -> None:
        stripped = url.strip().rstrip("/")
        address = parsed_url(stripped if stripped.endswith("/rerank") else f"{stripped}/rerank")
        if not address.host or address.query or address.userinfo:
            raise ImproperlyConfigured(
                'The URL of the reranker must look like "http://host:8080" or "https://host/v1/rerank".'
            )
        try:
            self._server = ModelServer(address, api_key, "of the reranker")
        except ValueError as error:
            raise ImproperlyConfigured(str(error)) from None
        if api == AUTO:
            api = "cohere" if model else "tei"
        if api not in PROTOCOLS:
            raise ImproperlyConfigured(f"The reranker's API is one of {AUTO}, {', '.join(PROTOCOLS)}, not {api!r}.")
        if api in ("jina", "cohere") and not model:
            raise ImproperlyConfigured(f"The reranker's API {api} needs the name of a model.")
        self._protocol = PROTOCOLS[api]
        self._batch_size = self._protocol.batch_size if batch_size is None else batch_size
        if self._batch_size < 1:
            raise ImproperlyConfigured("The reranker's batch size must be positive.")
        self.model = model
        self._breaker = Breaker("reranker")

    def score(self, query: str, chunk_ids: Sequence[int], timeout_seconds: float) -> dict[int, float]:
        deadline = time.monotonic() + timeout_seconds
        try:
            with self._breaker.call(RerankFailed):
                texts = load_texts(chunk_ids)
                scores = self.score_texts(query, [*texts.values()], deadline - time.monotonic())
        except Open as error:
            raise RerankFailed(str(error)) from None
        return dict(zip(texts, scores, strict=True))

    def score_texts(self, query: str, texts: Sequence[str], timeout_seconds: float) -> list[float]:
        """The server's score of each text, in the order given. Raises: RerankFailed, also if time runs out."""
        deadline = time.monotonic() + timeout_seconds
        scores: list[float] = []
        for start in range(0, len(texts), self._batch_size):
            # Servers refuse an empty text, and JSON a lone surrogate.
            batch = [well_formed(text) or " " for text in texts[start : start + self._batch_size]]
            answer = self._ask(self._protocol.request(self.model, well_formed(query), batch), deadline)
            try:
                scores += read_scores(answer, self._protocol, len(batch))
            except ValueError as error:
                raise self._failed(str(error)) from None
        return scores

    def _ask(self, body: Body, deadline: float) -> bytes:
        """The server's reply. Tries once more if the server is away or busy and there is time."""
        try:
            return self._server.ask(body, deadline, LARGEST_ANSWER_BYTES, attempts=2, pause_seconds=PAUSE_SECONDS)
        except ServerLate as error:
            raise RerankLate(str(self._failed(str(error)))) from None
        except ServerFailed as error:
            raise self._failed(str(error)) from None

    def _failed(self, problem: str) -> RerankFailed:
        return RerankFailed(f"The rerank server {self._server.url.host} gave no scores: {problem}.")


def read_scores(content: bytes, protocol: Protocol, count: int) -> list[float]:
    """The scores of ``count`` texts, in their order. Raises: ValueError, which says what is wrong with the answer."""
    try:
        rows = protocol.rows(json.loads(content))
        indexes = [row["index"] for row in rows]
        scores = [row[protocol.score] for row in rows]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("the answer is not a rerank response") from None
    if len(rows) != count:
        raise ValueError(f"{count} passages were sent and {len(rows)} scores came back")
    if not all(type(index) is int for index in indexes) or sorted(indexes) != list(range(count)):
        raise ValueError(f"the scores' indexes are not those from 0 to {count - 1}")
    if not all(type(score) in (int, float) and abs(score) <= sys.float_info.max for score in scores):
        raise ValueError("a score is not a finite number")
    by_index = dict(zip(indexes, scores, strict=True))
    return [float(by_index[index]) for index in range(count)]
