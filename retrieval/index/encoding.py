"""Questions and passages turned into vectors by the configured embedder; each question once."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from retrieval import conf
from retrieval.infrastructure.metrics import QUERY_ENCODINGS
from retrieval.infrastructure.recent import Recent

if TYPE_CHECKING:
    from retrieval.protocols import TextEmbedder
    from retrieval.types import Vectors

QUERIES_KEPT = 256
"""Of the questions encoded last."""


def encode_query(text: str) -> Vectors:
    """The question's unit vector by the configured embedder, from memory when it was asked a short while ago.

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
    if key in _running or _queries.get(key) is not None or not embedder.is_local:
        return
    _running[key] = running = _threads.submit(_encode, embedder, text)
    running.add_done_callback(lambda _: _running.pop(key, None))


def _encode(embedder: TextEmbedder, text: str) -> Vectors:
    QUERY_ENCODINGS.labels(source="embedder").inc()
    fresh = embedder.embed_query(text)
    _queries.put((embedder.name, text), fresh)
    return fresh


_queries: Recent[tuple[str, str], Vectors] = Recent(QUERIES_KEPT)
# By embedder and text. Not the retrievers' threads: these wait for an encoding, and would wait for themselves.
_running: dict[tuple[str, str], Future[Vectors]] = {}
_threads = ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="question")
forget_queries = _queries.clear
