"""What is kept of a text's meaning, of one pass: its vector and, where the embedder gives them, its tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrieval import conf
from retrieval.dense.token_vectors import TokenEncoding, packed
from retrieval.observability.metrics import EXCERPT_ENCODINGS, QUERY_ENCODINGS
from retrieval.protocols import TextEmbedder, TokenEmbedder
from retrieval.resilience.recent import Recent

if TYPE_CHECKING:
    from retrieval.types import Vectors

QUERIES_KEPT = 256
"""Of the questions encoded last. With 500 characters at most, one takes up to 200 KiB and mostly 20."""

EXCERPTS_KEPT = 256
"""Of the sentences, items and rows encoded last. One takes 80 KiB mostly, 400 KiB at most."""


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


def encode_passages(texts: Sequence[str], embedder: TextEmbedder | None = None) -> list[PassageEncoding]:
    """One encoding a text, in order; by the site's embedder, unless another one is given. Raises: EmbeddingFailed."""
    embedder = embedder or conf.embedder()
    if isinstance(embedder, TokenEmbedder):
        return [PassageEncoding(each.vector, packed(each)) for each in embedder.encode(texts)]
    return [PassageEncoding(vector) for vector in embedder.embed_documents(texts)]


def encode_excerpts(texts: Sequence[str], embedder: TokenEmbedder) -> list[TokenEncoding]:
    """One encoding a text, in order, from memory when another question needed it a short while ago.

    A text is read alone, so that what is kept of it holds in whatever document it stands. Raises: EmbeddingFailed.
    """
    found = {text: known for text in texts if (known := _excerpts.get((embedder.name, text))) is not None}
    missing = [text for text in dict.fromkeys(texts) if text not in found]
    EXCERPT_ENCODINGS.labels(source="memory").inc(len(found))
    EXCERPT_ENCODINGS.labels(source="embedder").inc(len(missing))
    for text, fresh in zip(missing, embedder.encode(missing), strict=True) if missing else ():
        found[text] = fresh
        _excerpts.put((embedder.name, text), fresh)
    return [found[text] for text in texts]


def encode_query(text: str) -> QueryEncoding:
    """The question's encoding by the configured embedder, from memory when it was asked a short while ago.

    One that is being encoded, for this search or for another, is waited for. Raises: EmbeddingFailed.
    """
    embedder = conf.embedder()
    key = (embedder.name, text)
    known = _queries.get(key)
    if known is not None:
        QUERY_ENCODINGS.labels(source="memory").inc()
        return known
    running = _running.get(key)
    return _encode(embedder, text) if running is None else running.result()


def encode_ahead(text: str) -> None:
    """Begin to encode what is about to be searched, while its words are looked up.

    Only by an embedder of this process: a server would be asked, and paid, for a question that may be reworded yet.
    """
    embedder = conf.embedder()
    key = (embedder.name, text)
    if key in _running or _queries.get(key) is not None or not isinstance(embedder, TokenEmbedder):
        return
    _running[key] = running = _threads.submit(_encode, embedder, text)
    running.add_done_callback(lambda _: _running.pop(key, None))


def _encode(embedder: TextEmbedder, text: str) -> QueryEncoding:
    QUERY_ENCODINGS.labels(source="embedder").inc()
    if isinstance(embedder, TokenEmbedder):
        tokens = embedder.encode_query(text)
        fresh = QueryEncoding(tokens.vector, tokens)
    else:
        fresh = QueryEncoding(embedder.embed_query(text))
    _queries.put((embedder.name, text), fresh)
    return fresh


_queries: Recent[tuple[str, str], QueryEncoding] = Recent(QUERIES_KEPT)
# By embedder and text. Not the retrievers' threads: these wait for an encoding, and would wait for themselves.
_running: dict[tuple[str, str], Future[QueryEncoding]] = {}
_threads = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="question")
_excerpts: Recent[tuple[str, str], TokenEncoding] = Recent(EXCERPTS_KEPT)
forget_queries = _queries.clear
forget_excerpts = _excerpts.clear
