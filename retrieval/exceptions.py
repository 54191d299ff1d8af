"""Errors of retrieval. Each docstring says who reads the error's message."""

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
    """An error: a retriever failed or exceeded its time limit. The operator reads the message."""


class NodeLost(RetrieverFailed):
    """An error: a database node did not answer a retriever. The operator reads the message, which names the node."""


class RerankFailed(RagsiteError):
    """An error: the reranker failed or exceeded its time limit. The operator reads the message."""


class EmbeddingFailed(ServiceUnavailable):
    """An error: the embedder returned no usable vector. The operator reads the message."""


class ImproperEmbedder(RagsiteError):
    """An error: the embedder's configuration is unusable. The operator reads the message."""


class NotFitted(RagsiteError):
    """An error: no calibration (typical cosines of related texts) could be computed. The operator reads the message."""


class DocumentRejected(RagsiteError):
    """An error: the file cannot become searchable text, and a retry will not help.

    The admin who uploaded the file reads the message.
    """
