"""One instance per process of each configured backend."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from retrieval.exceptions import ImproperEmbedder, ImproperModel

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


@functools.cache
def embedder() -> TextEmbedder:
    built: TextEmbedder = _build("EMBEDDER")
    return built


@functools.cache
def question_generator() -> QuestionGenerator | None:
    """None where no model writes questions."""
    built: QuestionGenerator | None = _build("QUESTION_GENERATOR") if settings.QUESTION_GENERATOR else None
    return built


@functools.cache
def reformulator() -> QueryReformulator:
    built: QueryReformulator = _build("QUERY_REFORMULATOR")
    return built


@functools.cache
def reranker(name: str) -> Reranker:
    """The reranker that RERANKERS has under this name. Raises: ImproperlyConfigured."""
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
