"""Errors of retrieval; each docstring names the reader of its message."""

from __future__ import annotations

from core.exceptions import RagsiteError, ServiceUnavailable


class InvalidQuery(RagsiteError):
    """The question cannot be searched. For the user who asked; becomes a 400."""


class SearchUnavailable(ServiceUnavailable):
    """Every retriever failed. For the user who asked, without internals; becomes a 503."""


class SearchBusy(SearchUnavailable):
    """Too many searches run now. For the user who asked; becomes a 503 with `Retry-After`."""

    retry_after_seconds = 2


class RetrieverFailed(RagsiteError):
    """One retriever failed or was late. For the operator."""


class NodeLost(RetrieverFailed):
    """A database node did not answer a retriever. For the operator: the message names the node."""


class RerankFailed(RagsiteError):
    """The reranker failed or was late.

    For the operator.
    """


class EmbeddingFailed(ServiceUnavailable):
    """The embedder returned no usable vector. For the operator."""


class ImproperEmbedder(RagsiteError):
    """The embedder's configuration is unusable.

    For the operator.
    """


class NotFitted(RagsiteError):
    """No thresholds could be fitted for the embedder. For the operator."""


class DocumentRejected(RagsiteError):
    """The file cannot become searchable text, also not in another attempt. For the admin who uploaded it."""
