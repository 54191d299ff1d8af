"""What each replaceable part of retrieval must do. Backends are named by dotted path in settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from retrieval.types import Leg, Ranking

    Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns text into unit vectors of one width.

    ``name`` identifies the vector space: two embedders with the same name give comparable vectors.
    """

    name: str
    dimension: int
    max_tokens: int

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Length of each text in the embedder's own tokens, without special tokens, before any truncation."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension), in the order given. Raises: EmbeddingFailed."""

    def embed_query(self, text: str) -> Vectors:
        """One unit vector, shape (dimension,). Raises: EmbeddingFailed."""


class Ranker(Protocol):
    """One leg of one search; made for a question, its filters and a deadline."""

    leg: Leg

    def rank(self, depth: int) -> Ranking:
        """The best ``depth`` chunks, best first. Raises: LegFailed when it cannot answer in time."""

    def score(self, chunk_ids: Sequence[int]) -> dict[int, float]:
        """What the leg says of these chunks, whether its list held them or not. Raises: LegFailed."""


class Reranker(Protocol):
    """A second, closer judgement of a few candidates."""

    def score(self, query: str, chunk_ids: Sequence[int], timeout_seconds: float) -> Mapping[int, float]:
        """Relevance of the chunks to the query as it was asked, higher is better, on a scale of its own.

        A chunk that cannot be judged (it is gone, or was never prepared) is missing. Raises: RerankFailed, also when
        there would be no answer in time; the caller keeps a deadline of its own.
        """


class QuestionGenerator(Protocol):
    """Writes the questions a passage answers."""

    def generate(self, text: str, heading_path: Sequence[str], language: str) -> list[str]:
        """At most two questions in the passage's language; empty when the passage answers none."""
