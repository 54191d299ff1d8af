"""What each replaceable part of retrieval must do. Backends are named by dotted path in settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from retrieval.types import Ranking, Reformulation, Retriever, StoredChunk, Turn, Vectors


class TextEmbedder(Protocol):
    """Turns text into unit vectors of one width; a base class of its implementations.

    ``name`` identifies the vector space: two embedders with the same name give comparable vectors.
    """

    name: str
    dimension: int
    max_tokens: int

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Fetch and load what :meth:`embed_query` needs, telling ``progress``; by default there is nothing to do.

        Raises: EmbeddingFailed.
        """

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Length of each text in the embedder's own tokens, without special tokens, before any truncation."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension), in the order given. Raises: EmbeddingFailed."""

    def embed_query(self, text: str) -> Vectors:
        """One unit vector, shape (dimension,). Raises: EmbeddingFailed."""


class Ranker(Protocol):
    """A retriever of one search; made for a question, its filters and a deadline.

    ``embedder_id`` names the embedder whose vectors it compares; None for one that compares none.
    """

    retriever: Retriever

    @property
    def embedder_id(self) -> int | None:
        return None

    def rank(self, depth: int) -> Ranking:
        """The best ``depth`` chunks, best first. Raises: RetrieverFailed when it cannot answer in time."""

    def score(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """What the retriever says of these chunks, whether its list held them or not; of those that it can judge by
        what is stored. Asked after :meth:`rank`, and without a look at the database."""

    def matched_terms(self, stored: Mapping[int, StoredChunk]) -> dict[int, tuple[str, ...]]:
        """The terms by which the retriever found these chunks, the most telling first; none by default."""
        return {}

    def word_shares(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """The share of the question's words that these chunks hold, from 0 to 1, rare words counting more; none by
        default."""
        return {}


class Reranker(Protocol):
    """A second, closer judgement of a few candidates; a base class of its implementations."""

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Fetch and load what :meth:`score` needs, telling ``progress``; by default there is nothing to do.

        Raises: RerankFailed.
        """

    def score(self, query: str, chunk_ids: Sequence[int], timeout_seconds: float) -> Mapping[int, float]:
        """Relevance of the chunks to the query, by chunk id; higher is better, on a scale of its own.

        A chunk that cannot be judged (it is gone, or was never prepared) is missing. Raises: RerankFailed, also when
        there would be no answer in time; the caller keeps a deadline of its own.
        """


class QueryReformulator(Protocol):
    """Says what to search for, given a question and the conversation before it."""

    def reformulate(self, question: str, history: Sequence[Turn]) -> Reformulation:
        """The question in words that can be searched alone; ``history`` is the earlier turns, oldest first.

        It never fails: in doubt the question comes back as it is.
        """


class QuestionGenerator(Protocol):
    """Writes the questions a passage answers. ``name`` is the model's."""

    name: str

    def generate(self, text: str, heading_path: Sequence[str], language: str) -> list[str]:
        """At most two questions in the passage's language; empty when the passage answers none."""
