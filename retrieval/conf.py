"""One instance per process of each configured backend."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db import DatabaseError, connection
from django.utils.module_loading import import_string

from retrieval.exceptions import EmbeddingFailed, ImproperEmbedder, ImproperModel
from retrieval.index.embedders.e5 import find_weights

if TYPE_CHECKING:
    from retrieval.protocols import QueryReformulator, QuestionGenerator, Reranker, TextEmbedder


def _build(setting: str, alias: str = "") -> Any:
    """The backend named by a setting of the form {"BACKEND": dotted path, "OPTIONS": {...}}, or by one alias of it.

    Raises: ImproperlyConfigured.
    """
    configured = getattr(settings, setting)
    if alias:
        if alias not in configured:
            raise ImproperlyConfigured(f"{setting} has no {alias!r}: it has {', '.join(sorted(configured)) or 'none'}.")
        configured = configured[alias]
    try:
        return import_string(configured["BACKEND"])(**configured.get("OPTIONS", {}))
    except (ImportError, TypeError, KeyError, ImproperModel, ImproperEmbedder) as error:
        raise ImproperlyConfigured(f"{setting} names a backend that cannot be made: {error}") from error


MULTILINGUAL_E5, MINILM = "multilingual-e5-small", "all-MiniLM-L6-v2"
"""The built-in embedders."""


@functools.cache
def embedder() -> TextEmbedder:
    """The site's embedder: the one in the settings. Without one in the settings, a site that has vectors of a built-in
    one keeps it, and a new site uses :func:`new_embedder`.

    Raises: ImproperlyConfigured; EmbeddingFailed if the database, which has the vectors, does not answer.
    """
    if settings.EMBEDDER:
        built: TextEmbedder = _build("EMBEDDER")
        return built
    stored = _stored_built_in()
    return _built_in(stored) if stored else new_embedder()


def new_embedder() -> TextEmbedder:
    """The embedder in the settings; without one, multilingual-e5-small, or all-MiniLM-L6-v2 if its weights are not
    installed. Raises: ImproperlyConfigured.
    """
    return embedder() if settings.EMBEDDER else _built_in(MULTILINGUAL_E5 if find_weights() else MINILM)


def embedder_notice() -> str:
    """A notice for administrators if the embedder was not set explicitly and is not multilingual-e5-small.

    Raises: as :func:`embedder`.
    """
    if settings.EMBEDDER or embedder() is _built_in(MULTILINGUAL_E5):
        return ""
    if embedder() is new_embedder():
        return (
            f"The embedder is {MINILM}, for English: the weights of {MULTILINGUAL_E5}, for about 100 languages, come "
            "for Linux on x86-64 only. To end this notice, set EMBEDDING_MODEL=all-MiniLM-L6-v2."
        )
    return (
        f"The embedder is {MINILM}, whose vectors this site has. New sites use {MULTILINGUAL_E5}, for about 100 "
        "languages: `manage.py reembed` moves this one. To stay, set EMBEDDING_MODEL=all-MiniLM-L6-v2."
    )


@functools.cache
def _built_in(name: str) -> TextEmbedder:
    built: TextEmbedder = _build("BUILT_IN_EMBEDDERS", name)
    return built


def _stored_built_in() -> str:
    """The name of the built-in embedder whose vectors are searched; empty if the vectors are another's."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT name FROM retrieval_embedder WHERE is_active")
            row = cursor.fetchone()
    except DatabaseError as error:
        raise EmbeddingFailed(f"Which embedder's vectors are stored cannot be looked up: {error}") from error
    stored = row[0].partition("/")[0] if row else ""
    return stored if stored in settings.BUILT_IN_EMBEDDERS else ""


@functools.cache
def question_generator() -> QuestionGenerator | None:
    """The generator of passages' questions; None if no model writes questions."""
    built: QuestionGenerator | None = _build("QUESTION_GENERATOR") if settings.QUESTION_GENERATOR else None
    return built


@functools.cache
def reformulator() -> QueryReformulator | None:
    """The model that rewrites questions; None if there is none. Raises: ImproperlyConfigured."""
    built: QueryReformulator | None = _build("QUERY_REFORMULATOR") if settings.QUERY_REFORMULATOR else None
    return built


@functools.cache
def reranker(name: str) -> Reranker:
    """The reranker with this name in RERANKERS. Raises: ImproperlyConfigured."""
    built: Reranker = _build("RERANKERS", name)
    return built


_BACKENDS = {
    "EMBEDDER": embedder,
    "QUESTION_GENERATOR": question_generator,
    "QUERY_REFORMULATOR": reformulator,
    "RERANKERS": reranker,
}


def _forget(setting: str, **_: Any) -> None:
    if setting in _BACKENDS:
        _BACKENDS[setting].cache_clear()


setting_changed.connect(_forget)
