"""What is kept of a text's meaning, of one pass: its vector and, where the embedder gives them, its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrieval import conf
from retrieval.dense.token_vectors import TokenEncoding, packed
from retrieval.metrics import QUERY_ENCODINGS
from retrieval.protocols import TokenEmbedder
from retrieval.recent import Recent

if TYPE_CHECKING:
    from retrieval.types import Vectors

QUERIES_KEPT = 256
"""Of the questions encoded last. With 500 characters at most, one takes up to 200 KiB and mostly 20."""


@dataclass(frozen=True, slots=True)
class PassageEncoding:
    """A unit vector, shape (dimension,), and the packed signs of the token vectors; None without such."""

    vector: Vectors
    token_signs: bytes | None = None


@dataclass(frozen=True, slots=True)
class QueryEncoding:
    """A unit vector, shape (dimension,), and the tokens; None where the embedder gives none."""

    vector: Vectors
    tokens: TokenEncoding | None = None


def encode_passages(texts: Sequence[str]) -> list[PassageEncoding]:
    """One encoding a text, in order, by the configured embedder. Raises: EmbeddingFailed."""
    embedder = conf.embedder()
    if isinstance(embedder, TokenEmbedder):
        return [PassageEncoding(each.vector, packed(each)) for each in embedder.encode(texts)]
    return [PassageEncoding(vector) for vector in embedder.embed_documents(texts)]


def encode_query(text: str) -> QueryEncoding:
    """The question's encoding by the configured embedder, from memory when it was asked a short while ago.

    Raises: EmbeddingFailed.
    """
    embedder = conf.embedder()
    key = (embedder.name, text)
    known = _queries.get(key)
    QUERY_ENCODINGS.labels(source="memory" if known else "embedder").inc()
    if known is not None:
        return known
    if isinstance(embedder, TokenEmbedder):
        tokens = embedder.encode_query(text)
        fresh = QueryEncoding(tokens.vector, tokens)
    else:
        fresh = QueryEncoding(embedder.embed_query(text))
    _queries.put(key, fresh)
    return fresh


_queries: Recent[tuple[str, str], QueryEncoding] = Recent(QUERIES_KEPT)
forget_queries = _queries.clear
