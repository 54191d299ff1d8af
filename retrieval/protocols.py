"""Protocols of retrieval's replaceable parts. Settings name backends by dotted path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from retrieval.types import Ranking, Reformulation, Retriever, StoredChunk, Turn, Vectors


class TextEmbedder(Protocol):
    """A model that turns text into unit vectors of one width.

    Vectors of embedders with the same ``name`` are comparable.
    """

    name: str
    dimension: int
    max_tokens: int

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Fetch and load what :meth:`embed_query` needs; by default no work. Raises: EmbeddingFailed."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return each text's length in the embedder's tokens, without special tokens or truncation."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimension), in the given order. Raises: EmbeddingFailed."""

    def embed_query(self, text: str) -> Vectors:
        """Return one unit vector, shape (dimension,). Raises: EmbeddingFailed."""


class Ranker(Protocol):
    """A retriever for one question, with its filters and deadline.

    ``embedder_id`` is the embedder of the vectors that it compares, if any.
    """

    retriever: Retriever

    @property
    def embedder_id(self) -> int | None:
        return None

    def rank(self, depth: int) -> Ranking:
        """Return the best ``depth`` chunks, best first. Raises: RetrieverFailed if it is late."""

    def score(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """Return the scores of these chunks, listed or not, as far as ``stored`` allows, without the database."""

    def matched_terms(self, stored: Mapping[int, StoredChunk]) -> dict[int, tuple[str, ...]]:
        """Return the terms by which these chunks were found, the most significant first."""
        return {}

    def word_shares(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """Return the share of the question's words in each chunk, in [0, 1]; rare words count more."""
        return {}


class Reranker(Protocol):
    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Fetch and load what :meth:`score` needs; by default no work. Raises: RerankFailed."""

    def score(self, query: str, chunk_ids: Sequence[int], timeout_seconds: float) -> Mapping[int, float]:
        """Return each chunk's relevance by id, on the reranker's own scale; higher is better.

        Chunks that cannot be judged are missing. Raises: RerankFailed, also if late.
        """


class QueryReformulator(Protocol):
    def reformulate(self, question: str, history: Sequence[Turn]) -> Reformulation:
        """Return the question in words that can be searched alone; ``history`` has the oldest turn first.

        It never fails: in doubt the question is unchanged.
        """


class QuestionGenerator(Protocol):
    """A writer of the questions that a passage answers."""

    name: str

    def generate(self, text: str, heading_path: Sequence[str], language: str) -> list[str]:
        """Return at most two questions in the passage's language; empty if it answers none."""
