"""Errors of retrieval; each says who may read its message.

``str(error)`` is one clear sentence with a next step, in words for that reader.
"""

from __future__ import annotations


class RetrievalError(Exception):
    """Base of everything that retrieval raises on purpose."""


class InvalidQuery(RetrievalError):
    """The question cannot be searched. For the person who asked; becomes a 400."""


class SearchUnavailable(RetrievalError):
    """Every retriever failed. For the person who asked, without internals; becomes a 503."""


class SearchBusy(SearchUnavailable):
    """Too many searches run at this moment. For the person who asked; becomes a 503 with `Retry-After`."""

    retry_after_seconds = 2


class RetrieverFailed(RetrievalError):
    """One retriever failed or ran past its deadline. For the operator: log, metric and trace name it."""


class NodeLost(RetrieverFailed):
    """A node of a distributed database did not answer a retriever. For the operator: the message names the node."""


class RerankFailed(RetrievalError):
    """The reranker failed or was late; the fused order is kept. For the operator: log, metric and trace name it."""


class ModelFailed(RetrievalError):
    """A language model returned nothing usable in time; rules are used instead. For the operator, in log, metric and
    trace.
    """


class ImproperModel(RetrievalError):
    """A language model cannot be asked as configured. For the operator."""


class EmbeddingFailed(RetrievalError):
    """The embedder gave no usable vector. For the operator."""


class ImproperEmbedder(RetrievalError):
    """The embedder cannot work as configured: weights missing or altered, width wrong. For the operator."""


class NotFitted(RetrievalError):
    """No thresholds could be fitted for the embedder. For the operator."""


class DocumentRejected(RetrievalError):
    """The file cannot become searchable text. For the admin who uploaded it; trying again will not help."""


class LeaseLost(RetrievalError):
    """Another process, or an admin, took the job over. For the log; the work is dropped."""


class FilesUnavailable(RetrievalError):
    """The storage of the documents' files does not answer, or refuses. For the person whose request needs a file;
    becomes a 503."""


class DiskFull(RetrievalError):
    """The disk has no room to save anything. For the person whose request would write; becomes a 507."""
