"""Protocols of the classes that the site's settings can replace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from retrieval.types import Ranking, Reformulation, Retriever, StoredChunk, Turn, Vectors


class TextEmbedder(Protocol):
    """A model that turns texts into unit vectors with ``dimension`` numbers.

    Only vectors of embedders with the same ``name`` can be compared.
    """

    name: str
    dimension: int
    max_tokens: int

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Download and load what :meth:`embed_query` needs. Raises: EmbeddingFailed."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return each text's number of tokens, without special tokens and truncation."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, shape (len(texts), dimension), in the given order. Raises: EmbeddingFailed."""

    def embed_query(self, text: str) -> Vectors:
        """Return one unit vector, shape (dimension,). Raises: EmbeddingFailed."""


class Ranker(Protocol):
    """A retriever that is prepared for one question, its filters and a time limit.

    ``embedder_id`` is the embedder whose vectors it compares, or None. The methods' argument ``stored`` maps ids to
    chunks (passages) that are already loaded.
    """

    retriever: Retriever

    @property
    def embedder_id(self) -> int | None:
        return None

    def rank(self, depth: int) -> Ranking:
        """Return at most ``depth`` chunks (passages), best first.

        Raises: RetrieverFailed, also after the time limit.
        """

    def score(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """Return the score of each chunk in ``stored``, by chunk id, without a database query."""

    def find_matched_terms(self, stored: Mapping[int, StoredChunk]) -> dict[int, tuple[str, ...]]:
        """Return, for each chunk id in ``stored``, the question's terms that the chunk contains, rarest first."""
        return {}

    def compute_word_shares(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """Return the share of the question's words that each chunk in ``stored`` contains, 0 to 1, by chunk id."""
        return {}


class Reranker(Protocol):
    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Download and load what :meth:`score` needs. Raises: RerankFailed."""

    def score(self, query: str, chunk_ids: Sequence[int], timeout_seconds: float) -> Mapping[int, float]:
        """Return the relevance of each chunk (passage) by id. Higher is better; rerankers have different scales.

        A chunk that cannot be scored is missing. Raises: RerankFailed, also after ``timeout_seconds``.
        """


class QueryReformulator(Protocol):
    def reformulate(self, question: str, history: Sequence[Turn]) -> Reformulation:
        """Return the question in words that can be understood without ``history``, the earlier turns, oldest first.

        If this fails, the question is returned unchanged, and no error is raised.
        """


class QuestionGenerator(Protocol):
    """A language model that writes questions which a passage answers."""

    name: str

    def generate(self, text: str, heading_path: Sequence[str], language: str) -> list[str]:
        """Return at most two questions in the passage's language; none if the passage answers no question."""
