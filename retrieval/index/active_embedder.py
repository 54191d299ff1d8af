"""Find the active embedder, whose vectors are searched, and convert questions and names to vectors."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction

from core.database import fetch_rows
from core.exceptions import RagsiteError
from core.read_once import get_or_read
from core.recent import LruCache
from retrieval.exceptions import EmbedderMisconfigured
from retrieval.index import embedder_choice
from retrieval.index.vector_index import create_index
from retrieval.metrics import QUERY_ENCODINGS
from retrieval.models import Embedder

if TYPE_CHECKING:
    from retrieval.protocols import TextEmbedder
    from retrieval.types import Vectors

logger = logging.getLogger(__name__)


QUERIES_KEPT = 256


_queries: LruCache[tuple[str, str], Vectors] = LruCache(QUERIES_KEPT)
_begun: LruCache[tuple[str, str], Future[Vectors]]
_threads: ThreadPoolExecutor


def _reset_threads() -> None:
    """Create new threads and drop unfinished encodings, because a forked process has no threads."""
    global _begun, _threads
    _begun = LruCache(QUERIES_KEPT)
    _threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="encoder")


_reset_threads()
os.register_at_fork(after_in_child=_reset_threads)


def clear_query_vector_cache() -> None:
    _queries.clear()
    _begun.clear()


def begin_encoding_query(text: str) -> None:
    """Start to compute the text's vector in a thread, if it is not cached. `encode_query` returns the vector."""
    try:
        embedder = embedder_choice.get_embedder()
    except (RagsiteError, ImproperlyConfigured):
        return  # The error is not raised here, because `encode_query` raises it when a question is searched.
    key = embedder.name, text
    if _queries.get(key) is None:
        _begun.put(key, _threads.submit(copy_context().run, embedder.embed_query, text))


def encode_query(text: str) -> Vectors:
    """Return the text's unit vector by the site's embedder. Raises: EmbeddingFailed."""
    embedder = embedder_choice.get_embedder()
    key = embedder.name, text
    known = _queries.get(key)
    QUERY_ENCODINGS.labels(source="embedder" if known is None else "memory").inc()
    if known is None:
        begun = _begun.pop(key)
        # A computation that still waits for a thread is done here, which is faster.
        known = embedder.embed_query(text) if begun is None or begun.cancel() else begun.result()
        _queries.put(key, known)
    return known


NAMES_KEPT = 2_000


_names: LruCache[tuple[str, str], Vectors] = LruCache(NAMES_KEPT)


def encode_names(names: Sequence[str]) -> list[Vectors]:
    """Return unit vectors of short names such as column names. Raises: EmbeddingFailed."""
    embedder = embedder_choice.get_embedder()
    kept = {name: vector for name in names if (vector := _names.get((embedder.name, name))) is not None}
    new = [name for name in dict.fromkeys(names) if name not in kept]
    for name, vector in zip(new, embedder.embed_documents(new) if new else (), strict=True):
        kept[name] = vector
        _names.put((embedder.name, name), vector)
    return [kept[name] for name in names]


# Embedders whose vectors this process has searched, by name. True means that another embedder is active now.
_served: dict[str, bool] = {}


def active_embedder() -> Embedder:
    """Return the database row of the active embedder. If it is missing, create it and its vector index.

    Raises: EmbedderMisconfigured if another embedder than the site's computed the stored vectors.
    """
    configured = embedder_choice.get_embedder()
    if embedder_choice.get_trial_embedder() is not None:
        return _find_trial_embedder_row(configured)
    active = _read_embedder()
    if active is None:
        with transaction.atomic():
            active, _ = Embedder.objects.get_or_create(
                name=configured.name, defaults={"dimension": configured.dimension, "is_active": True}
            )
            if not active.is_active:
                active.is_active = True
                active.save(update_fields=["is_active"])
            create_index(active)
    if active.name == configured.name and active.dimension == configured.dimension:
        _served[active.name] = False
    else:
        if active.options:
            _open_chosen_embedder()
        raise EmbedderMisconfigured(
            f"The stored vectors are {active.name}'s ({active.dimension} wide), the settings name {configured.name} "
            f"({configured.dimension} wide): run `manage.py reembed`, or set the embedder back."
        )
    return active


def find_query_embedder() -> Embedder:
    """Return the embedder whose vectors this process searches, which is normally the active one.

    After a change of the embedder, running processes search the old vectors. Raises: EmbedderMisconfigured.
    """
    return get_or_read("embedder", _find_query_embedder)


def _find_query_embedder() -> Embedder:
    try:
        return active_embedder()
    except EmbedderMisconfigured:
        configured = embedder_choice.get_embedder()
        is_former = _served.get(configured.name)
        if is_former is None and not django_settings.EMBEDDER:
            is_former = False
        former = _read_embedder("name = %s", configured.name) if is_former is not None else None
        if former is None:
            raise
        if not is_former:
            logger.warning("Another embedder is in service: this process searches its former vectors. Restart it.")
            _served[configured.name] = True
        return former


def _find_trial_embedder_row(candidate: TextEmbedder) -> Embedder:
    row = _read_embedder("name = %s", candidate.name)
    if row is None:
        raise EmbedderMisconfigured(f"Passages have no vectors of {candidate.name} yet.")
    return row


_adopting = threading.Lock()


def _open_chosen_embedder() -> None:
    def adopt_embedder() -> None:
        try:
            embedder_choice.load_chosen_embedder()
        except (RagsiteError, ImproperlyConfigured) as error:
            logger.warning("The chosen embedder cannot be opened: %s", error)
        finally:
            connection.close()
            _adopting.release()

    if _adopting.acquire(blocking=False):
        threading.Thread(target=adopt_embedder, name="adopt embedder", daemon=True).start()


def is_searching_old_vectors(embedder: str) -> bool:
    return _served.get(embedder, False)


def has_passages_without_vectors(collections: Sequence[int]) -> bool:
    """Return whether some passages of these collections lack the vectors that this process searches.

    After a switch of the site's embedder, a process may still search the old vectors, which later passages lack.
    """
    configured = embedder_choice.get_embedder().name
    if not is_searching_old_vectors(configured):
        return False
    ((found,),) = fetch_rows(
        "SELECT EXISTS (SELECT 1 FROM retrieval_chunk WHERE collection_id = ANY(%s) AND id > ("
        "SELECT coalesce(max(chunk_id), 0) FROM retrieval_chunkembedding "
        "WHERE embedder_id = (SELECT id FROM retrieval_embedder WHERE name = %s)))",
        [list(collections), configured],
    )
    return bool(found)


def _read_embedder(condition: str = "is_active", *values: str) -> Embedder | None:
    columns = [str(field.column) for field in Embedder._meta.concrete_fields]
    rows = fetch_rows(f"SELECT {', '.join(columns)} FROM retrieval_embedder WHERE {condition}", values)
    return Embedder.from_db(connection.alias, columns, rows[0]) if rows else None
