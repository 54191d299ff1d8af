"""Embeddings from any server that speaks OpenAI's `POST /embeddings`: OpenAI itself, Ollama, vLLM."""

from __future__ import annotations

import json
import logging
import random
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2
import numpy as np

from retrieval.exceptions import EmbeddingFailed, ImproperEmbedder
from retrieval.index.embedders.session import well_formed
from retrieval.infrastructure import deadline
from retrieval.infrastructure.breaker import Breaker, Open
from retrieval.infrastructure.model_server import AnswerTooLong, ModelServer, parsed_url, retry_after_seconds
from retrieval.protocols import TextEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})

DOCUMENT_ATTEMPTS, LONGEST_DOCUMENT_PAUSE_SECONDS = 4, 20.0
QUERY_ATTEMPTS, LONGEST_QUERY_PAUSE_SECONDS = 2, 1.0
"""A person waits for a query; an ingestion task can wait for a server to recover, and is retried as a whole."""

LARGEST_VECTOR_BYTES = 256 * 1024
"""Of a vector as JSON, with what is around it: 4,096 numbers of 25 characters take less than half."""

PIECE = re.compile(r"(?P<letters>[A-Za-z]+)|(?P<digits>[0-9]+)|\S")

LETTERS_A_TOKEN, DIGITS_A_TOKEN = 4, 3


class OpenAICompatibleEmbedder(TextEmbedder):
    """A `TextEmbedder` whose model runs elsewhere. Instances may be shared by threads and survive a fork.

    ``max_tokens`` bounds the chunks that are sent, in the tokens `count_tokens` estimates; texts are never cut here.
    ``timeout_seconds`` is for each attempt with documents, which get ``max_attempts``. All that one call may take while
    somebody waits for an answer (a query always, documents within a question's deadline) is ``query_timeout_seconds``,
    with two attempts at most. Such calls go through a circuit breaker.

    Raises: ImproperEmbedder when an argument cannot work.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        model: str,
        dimension: int,
        max_tokens: int = 350,
        timeout_seconds: float = 30,
        batch_size: int = 64,
        *,
        max_attempts: int = DOCUMENT_ATTEMPTS,
        backoff_seconds: float = 0.5,
        query_timeout_seconds: float = 2.5,
    ) -> None:
        url = parsed_url(base_url.rstrip("/") + "/embeddings")
        if not url.host:
            raise ImproperEmbedder('The base URL of the embedder must look like "https://host/v1".')
        try:
            self._server = ModelServer(url, api_key, "for embeddings")
        except ValueError as error:
            raise ImproperEmbedder(str(error)) from None
        if not model:
            raise ImproperEmbedder("The embedder needs the name of a model.")
        times = min(timeout_seconds, query_timeout_seconds)
        if min(dimension, max_tokens, batch_size, max_attempts) < 1 or times <= 0 or backoff_seconds < 0:
            raise ImproperEmbedder(
                "Dimension, tokens, timeout, batch size and attempts of the embedder must be positive."
            )
        self.name = f"{model}/{dimension}"
        self.model = model
        self.dimension = dimension
        self.max_tokens = max_tokens
        self.timeout_seconds = timeout_seconds
        self.batch_size = batch_size
        self.max_attempts = max_attempts
        self.backoff_seconds = backoff_seconds
        self.query_timeout_seconds = query_timeout_seconds
        self._breaker = Breaker("embedder")

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An estimate, mostly on the high side: the server's tokenizer is unknown and asking it would cost a request.

        Four ASCII letters, three digits, or one other character make a token, and a token never spans two words.
        Against BERT's English vocabulary that is 10 to 40 % too many on English prose and documentation of code; on
        Dutch it is 16 % too few, for that vocabulary splits foreign words into bits.
        """
        return [sum(_tokens_of(piece) for piece in PIECE.finditer(text)) for text in texts]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension), in the order given; an empty text is sent as a space.

        Raises: EmbeddingFailed; then nothing is returned, not even the batches that came back.
        """
        batches = [texts[start : start + self.batch_size] for start in range(0, len(texts), self.batch_size)]
        if deadline.current() is None:
            vectors = [
                self._embed(
                    batch, self.max_attempts, LONGEST_DOCUMENT_PAUSE_SECONDS, self.max_attempts * self.timeout_seconds
                )
                for batch in batches
            ]
        else:
            with deadline.limit(self.query_timeout_seconds):
                vectors = [self._embed_for_reader(batch) for batch in batches]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *vectors])

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed_for_reader([text])[0]
        return vector

    def _embed_for_reader(self, texts: Sequence[str]) -> Vectors:
        """Somebody waits: little time, and none for a server that failed repeatedly. Raises: EmbeddingFailed."""
        seconds = deadline.seconds_left(self.query_timeout_seconds)
        try:
            with self._breaker.call(EmbeddingFailed):
                return self._embed(texts, min(self.max_attempts, QUERY_ATTEMPTS), LONGEST_QUERY_PAUSE_SECONDS, seconds)
        except Open as error:
            raise EmbeddingFailed(str(error)) from None

    def _embed(self, texts: Sequence[str], attempts: int, longest_pause_seconds: float, seconds: float) -> Vectors:
        # Servers refuse an empty input, and JSON a lone surrogate.
        inputs = [well_formed(text) or " " for text in texts]
        ends_at = time.monotonic() + seconds
        content = self._post({"model": self.model, "input": inputs}, attempts, longest_pause_seconds, ends_at)
        try:
            rows = json.loads(content)["data"]
            by_index = {row["index"]: row["embedding"] for row in rows}
            complete = len(rows) == len(inputs) and set(by_index) == set(range(len(inputs)))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise self._failed("the answer is not an embeddings response") from None
        if not complete:
            raise self._failed(f"{len(inputs)} texts were sent and {len(rows)} vectors with other numbers came back")
        try:
            vectors = np.array([by_index[index] for index in range(len(inputs))], np.float64)
        except (ValueError, TypeError, OverflowError):
            raise self._failed("the vectors are not lists of numbers of one length") from None
        if vectors.ndim != 2 or vectors.shape[1] != self.dimension:
            width = vectors.shape[1] if vectors.ndim == 2 else "no"
            raise self._failed(f"the vectors have {width} numbers and {self.dimension} are configured")
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise self._failed("a vector is zero or not finite")
        units: Vectors = (vectors / norms).astype(np.float32)
        return units

    def _post(self, body: dict[str, Any], attempts: int, longest_pause_seconds: float, ends_at: float) -> bytes:
        """The answer's bytes. A timeout is tried again only while there is time for it. Raises: EmbeddingFailed."""
        largest = LARGEST_VECTOR_BYTES * (1 + len(body["input"]))
        for attempt in range(1, attempts + 1):
            pause = random.uniform(0.5, 1) * self.backoff_seconds * 2 ** (attempt - 1)
            try:
                status, headers, content = self._server.post(
                    body, min(ends_at, time.monotonic() + self.timeout_seconds), largest
                )
            except AnswerTooLong as error:
                raise self._failed(str(error)) from None
            except httpx2.TransportError as error:
                problem = f"it could not be reached ({type(error).__name__})"
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise self._failed(f"its answer could not be read ({type(error).__name__})") from None
            else:
                if status == HTTPStatus.OK:
                    return content
                problem = self._server.refusal(status, content, body)
                if status not in RETRIED_STATUSES:
                    raise self._failed(problem)
                pause = max(pause, retry_after_seconds(headers))
            pause = min(pause, longest_pause_seconds)
            if time.monotonic() + pause >= ends_at:
                break
            if attempt < attempts:
                logger.warning("Embedding with %s: %s; trying again in %.1f s.", self.model, problem, pause)
                time.sleep(pause)
        raise self._failed(f"{problem}, {attempt} times in a row")

    def _failed(self, problem: str) -> EmbeddingFailed:
        return EmbeddingFailed(
            f"The embedding server {self._server.url.host} gave no vectors for model {self.model}: {problem}."
        )


def _tokens_of(piece: re.Match[str]) -> int:
    length = piece.end() - piece.start()
    if piece["letters"]:
        return -(-length // LETTERS_A_TOKEN)
    return -(-length // DIGITS_A_TOKEN) if piece["digits"] else 1
