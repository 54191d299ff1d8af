"""Errors of retrieval. Operators read their messages, unless the docstring names other readers."""

from __future__ import annotations

from core.exceptions import RagsiteError, ServiceUnavailable


class InvalidQuery(RagsiteError):
    """An error: the question cannot be searched. The user reads the message, and the API answers 400."""


class SearchUnavailable(ServiceUnavailable):
    """An error: every retriever failed. The user reads the message, and the API answers 503."""


class SearchBusy(SearchUnavailable):
    """An error: too many searches are running. The user reads the message. The API answers 503 with `Retry-After`."""

    retry_after_seconds = 2


class RetrieverFailed(RagsiteError):
    """An error: a retriever failed or exceeded its time limit."""


class DatabaseNodeLost(RetrieverFailed):
    """An error: a database node did not answer a retriever. The message names the node."""


class RerankFailed(RagsiteError):
    """An error: the reranker failed or exceeded its time limit."""


class EmbeddingFailed(ServiceUnavailable):
    """An error: the embedder returned no usable vector."""


class EmbedderMisconfigured(RagsiteError):
    """An error: the embedder's configuration is unusable."""


class CalibrationFailed(RagsiteError):
    """An error: no calibration (typical cosines of related texts) could be computed."""


class DocumentRejected(RagsiteError):
    """An error: the file cannot become searchable text. The message is for its uploader."""
