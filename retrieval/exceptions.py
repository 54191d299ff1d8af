"""Errors of retrieval. Each docstring says for whom the message is."""

from __future__ import annotations

from core.exceptions import RagsiteError, ServiceUnavailable


class InvalidQuery(RagsiteError):
    """The question cannot be searched. For the user who asked. The API answers 400."""


class SearchUnavailable(ServiceUnavailable):
    """Every retriever failed. For the user who asked, without internal details. The API answers 503."""


class SearchBusy(SearchUnavailable):
    """Too many searches are running. For the user who asked. The API answers 503 with `Retry-After`."""

    retry_after_seconds = 2


class RetrieverFailed(RagsiteError):
    """A retriever failed or was late. For the operator."""


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
    """Thresholds could not be fitted to the embedder. For the operator."""


class DocumentRejected(RagsiteError):
    """The file cannot become searchable text, and a retry will not help. For the admin who uploaded the file."""
