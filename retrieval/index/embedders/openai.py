"""Embed texts on a server that has OpenAI's `POST /embeddings`, such as OpenAI, Ollama or vLLM."""

from __future__ import annotations

import json
import logging
import re
import time
from typing import TYPE_CHECKING

import numpy as np

from core import deadline
from core.breaker import Breaker, BreakerOpen
from core.model_server import ModelServer, ServerFailed, parse_url
from retrieval.exceptions import EmbedderMisconfigured, EmbeddingFailed
from retrieval.index.embedders.session import replace_surrogates
from retrieval.protocols import TextEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

DOCUMENT_ATTEMPTS, LONGEST_DOCUMENT_PAUSE_SECONDS = 4, 20.0
QUERY_ATTEMPTS, LONGEST_QUERY_PAUSE_SECONDS = 2, 1.0
"""A question has fewer attempts, because a user waits. The task that encodes documents is retried as a whole."""

BATCH_SIZE, PAUSE_SECONDS = 64, 0.5
TOO_MANY_STATUSES = frozenset({400, 413, 422})
"""Servers refuse too many texts in one request by these statuses. Text Embeddings Inference accepts 32."""

LARGEST_VECTOR_BYTES = 256 * 1024
"""Limit for one vector in JSON: 4,096 numbers of 25 characters take less than half."""

PIECE = re.compile(r"(?P<letters>[A-Za-z]+)|(?P<digits>[0-9]+)|\S")

LETTERS_A_TOKEN, DIGITS_A_TOKEN = 4, 3


class TooManyTexts(EmbeddingFailed):
    """An error: the server refused a request, perhaps because it contained too many texts."""


class OpenAICompatibleEmbedder(TextEmbedder):
    """An embedder on a server. It is safe for threads and forks.

    ``timeout_seconds`` limits a request with documents, ``query_timeout_seconds`` all attempts for a question together.
    Raises: EmbedderMisconfigured for an unusable argument.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        model: str,
        dimension: int,
        max_tokens: int = 350,
        timeout_seconds: float = 30,
        *,
        query_timeout_seconds: float = 2.5,
    ) -> None:
        url = parse_url(base_url.rstrip("/") + "/embeddings")
        if not url.host:
            raise EmbedderMisconfigured('The base URL of the embedder must look like "https://host/v1".')
        try:
            self._server = ModelServer(url, api_key, "for embeddings")
        except ValueError as error:
            raise EmbedderMisconfigured(str(error)) from None
        if not model:
            raise EmbedderMisconfigured("The embedder needs the name of a model.")
        if min(dimension, max_tokens) < 1 or min(timeout_seconds, query_timeout_seconds) <= 0:
            raise EmbedderMisconfigured("Dimension, tokens and timeout of the embedder must be positive.")
        self.name = f"{model}/{dimension}"
        self.model = model
        self.dimension = dimension
        self.max_tokens = max_tokens
        self.timeout_seconds = timeout_seconds
        self.query_timeout_seconds = query_timeout_seconds
        self.batch_size = BATCH_SIZE
        self._breaker = Breaker("embedder")

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return an estimate of each text's tokens, because the server's tokenizer is unknown.

        Four ASCII letters, three digits, or one other character count as a token.
        """
        return [sum(_estimate_tokens(piece) for piece in PIECE.finditer(text)) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimension). An empty text is sent as a space.

        Raises: EmbeddingFailed, also if only one batch failed.
        """
        if deadline.get_current() is None:
            seconds = DOCUMENT_ATTEMPTS * self.timeout_seconds
            return self._embed(texts, DOCUMENT_ATTEMPTS, LONGEST_DOCUMENT_PAUSE_SECONDS, seconds)
        with deadline.limit_time(self.query_timeout_seconds):
            return self._embed_queries(texts)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed_queries([text])[0]
        return vector

    def _embed_queries(self, texts: Sequence[str]) -> Vectors:
        seconds = deadline.seconds_left(self.query_timeout_seconds)
        try:
            with self._breaker.guard_call(EmbeddingFailed):
                return self._embed(texts, QUERY_ATTEMPTS, LONGEST_QUERY_PAUSE_SECONDS, seconds)
        except BreakerOpen as error:
            raise EmbeddingFailed(str(error)) from None

    def _embed(self, texts: Sequence[str], attempts: int, longest_pause_seconds: float, seconds: float) -> Vectors:
        """Embed the texts in batches, which are halved if the server refuses one. Raises: EmbeddingFailed."""
        vectors, start, size_before = [np.empty((0, self.dimension), np.float32)], 0, self.batch_size
        while start < len(texts):
            batch = texts[start : start + self.batch_size]
            try:
                vectors.append(self._embed_batch(batch, attempts, longest_pause_seconds, seconds))
                start += len(batch)
            except TooManyTexts:
                if len(batch) == 1:
                    self.batch_size = size_before
                    raise
                self.batch_size = (len(batch) + 1) // 2
                logger.warning("%s refused %d texts at once: it is sent fewer.", self._server.url.host, len(batch))
        return np.concatenate(vectors)

    def _embed_batch(
        self, texts: Sequence[str], attempts: int, longest_pause_seconds: float, seconds: float
    ) -> Vectors:
        # Servers refuse an empty text, and JSON cannot encode a lone surrogate.
        inputs = [replace_surrogates(text) or " " for text in texts]
        ends_at = time.monotonic() + seconds
        try:
            content = self._server.ask(
                {"model": self.model, "input": inputs},
                ends_at,
                LARGEST_VECTOR_BYTES * (1 + len(inputs)),
                attempts=attempts,
                pause_seconds=PAUSE_SECONDS,
                longest_pause_seconds=longest_pause_seconds,
                attempt_seconds=self.timeout_seconds,
            )
        except ServerFailed as error:
            failure = self._build_error(str(error))
            raise (TooManyTexts(str(failure)) if error.status in TOO_MANY_STATUSES else failure) from None
        try:
            rows = json.loads(content)["data"]
            indexes = [row.get("index") for row in rows]
            # Some servers send no index, or the same one in each row; their rows are in the order of the texts.
            places = range(len(rows)) if len(set(indexes)) == 1 else indexes
            by_index = {place: row["embedding"] for place, row in zip(places, rows, strict=True)}
            vectors = np.array([by_index[index] for index in range(len(inputs))], np.float64)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise self._build_error("the answer does not hold a list of numbers for each text") from None
        if len(rows) != len(inputs):
            raise self._build_error(f"{len(inputs)} texts were sent and {len(rows)} vectors came back")
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            width = vectors.shape[1] if vectors.ndim == 2 else "no"
            raise self._build_error(f"the vectors have {width} numbers and {self.dimension} are configured")
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise self._build_error("a vector is zero or not finite")
        units: Vectors = (vectors / norms).astype(np.float32)
        return units

    def _build_error(self, problem: str) -> EmbeddingFailed:
        return EmbeddingFailed(
            f"The embedding server {self._server.url.host} gave no vectors for model {self.model}: {problem}."
        )


def _estimate_tokens(piece: re.Match[str]) -> int:
    length = piece.end() - piece.start()
    if piece["letters"]:
        return -(-length // LETTERS_A_TOKEN)
    return -(-length // DIGITS_A_TOKEN) if piece["digits"] else 1
