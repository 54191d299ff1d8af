"""Rerank passages by a server that speaks the protocol of Text Embeddings Inference (TEI), vLLM, Jina or Cohere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from core.breaker import Breaker, BreakerOpen
from core.model_server import ModelServer, ServerFailed, parse_url
from retrieval.exceptions import RerankFailed
from retrieval.index.embedders.session import replace_surrogates
from retrieval.protocols import Reranker
from retrieval.search.passage_rows import load_chunk_texts

PAUSE_SECONDS = 0.1
# Scores of 100 passages take less than a tenth of this.
LARGEST_ANSWER_BYTES = 8 * 2**20

# Largest number of passages in one request: TEI's default limit, and a limit for other servers.
TEI, TEI_BATCH, BATCH = "tei", 32, 100
# Additional fields of a request, by server. -1 makes vLLM cut long texts instead of refusing them.
EXTRAS: Mapping[str, Mapping[str, Any]] = {
    "jina": {"return_documents": False},
    "cohere": {},
    "vllm": {"truncate_prompt_tokens": -1},
}
AUTO = "auto"


class HttpReranker(Reranker):
    """A reranker on a server. It is safe for threads and forks.

    ``api`` is the protocol; "auto" means Cohere's if ``model`` is given, otherwise TEI's. Raises: ImproperlyConfigured
    for an unusable argument.
    """

    def __init__(self, url: str, api_key: str = "", model: str = "", api: str = AUTO) -> None:
        stripped = url.strip().rstrip("/")
        address = parse_url(stripped if stripped.endswith("/rerank") else f"{stripped}/rerank")
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
        if api not in (TEI, *EXTRAS):
            raise ImproperlyConfigured(f"The reranker's API is one of {AUTO}, {TEI}, {', '.join(EXTRAS)}, not {api!r}.")
        if api in ("jina", "cohere") and not model:
            raise ImproperlyConfigured(f"The reranker's API {api} needs the name of a model.")
        self._api = api
        self._batch_size = TEI_BATCH if api == TEI else BATCH
        self.model = model
        self._breaker = Breaker("reranker")

    def score(self, query: str, chunk_ids: Sequence[int], timeout_seconds: float) -> dict[int, float]:
        deadline = time.monotonic() + timeout_seconds
        try:
            with self._breaker.guard_call(RerankFailed):
                texts = load_chunk_texts(chunk_ids)
                scores = self.score_texts(query, [*texts.values()], deadline - time.monotonic())
        except BreakerOpen as error:
            raise RerankFailed(str(error)) from None
        return dict(zip(texts, scores, strict=True))

    def score_texts(self, query: str, texts: Sequence[str], timeout_seconds: float) -> list[float]:
        """Return the server's scores in the order of ``texts``.

        Raises: RerankFailed, also after ``timeout_seconds``.
        """
        deadline = time.monotonic() + timeout_seconds
        scores: list[float] = []
        for start in range(0, len(texts), self._batch_size):
            # Servers refuse an empty text, and JSON cannot encode a lone surrogate.
            batch = [replace_surrogates(text) or " " for text in texts[start : start + self._batch_size]]
            body = self._build_body(replace_surrogates(query), batch)
            try:
                answer = self._server.ask(body, deadline, LARGEST_ANSWER_BYTES, attempts=2, pause_seconds=PAUSE_SECONDS)
                scores += self._read_scores(answer, len(batch))
            except (ServerFailed, ValueError) as error:
                raise RerankFailed(f"The rerank server {self._server.url.host} gave no scores: {error}.") from None
        return scores

    def _build_body(self, query: str, texts: Sequence[str]) -> dict[str, object]:
        if self._api == TEI:
            return {"query": query, "texts": texts, "raw_scores": False, "truncate": True}
        named = {"model": self.model} if self.model else {}
        return {"query": query, "documents": texts, "top_n": len(texts), **named, **EXTRAS[self._api]}

    def _read_scores(self, content: bytes, count: int) -> list[float]:
        try:
            answer = json.loads(content)
            rows, name = (answer, "score") if self._api == TEI else (answer["results"], "relevance_score")
            by_index = {row["index"]: row[name] for row in rows}
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ValueError("the answer is not a rerank response") from None
        if len(rows) != count or by_index.keys() != set(range(count)):
            raise ValueError(f"the {len(rows)} scores that came back are not those of the {count} passages sent")
        if not all(type(score) in (int, float) and abs(score) <= sys.float_info.max for score in by_index.values()):
            raise ValueError("a score is not a finite number")
        return [float(by_index[index]) for index in range(count)]
