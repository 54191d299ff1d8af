"""Choose the site's embedder: from the settings, from the choice in the admin, or a built-in one."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db import DatabaseError, connection

from retrieval.backends import build_backend
from retrieval.exceptions import EmbedderMisconfigured, EmbeddingFailed
from retrieval.index.embedders.e5 import find_weights
from retrieval.index.embedders.onnx import LocalEmbedder

if TYPE_CHECKING:
    from retrieval.protocols import TextEmbedder


MULTILINGUAL_E5, MINILM = "multilingual-e5-small", "all-MiniLM-L6-v2"
"""The built-in embedders."""


_tried: ContextVar[TextEmbedder | None] = ContextVar("tried_embedder", default=None)


@contextmanager
def use_embedder(candidate: TextEmbedder) -> Iterator[None]:
    """Make ``candidate`` the site's embedder within this context, for a trial."""
    token = _tried.set(candidate)
    try:
        yield
    finally:
        _tried.reset(token)


def get_trial_embedder() -> TextEmbedder | None:
    return _tried.get()


def get_embedder() -> TextEmbedder:
    """Return the site's embedder: the one in the settings, or else the one chosen in the admin.

    If neither exists, the result is the built-in embedder that computed the stored vectors; a site without vectors gets
    the default. Raises: ImproperlyConfigured; EmbeddingFailed if the database does not answer.
    """
    return _tried.get() or _build_site_embedder()


@functools.cache
def _build_site_embedder() -> TextEmbedder:
    if settings.EMBEDDER:
        built: TextEmbedder = build_backend("EMBEDDER")
        return built
    name, options = _read_stored_embedder()
    if options:
        return build_chosen_embedder(options)
    stored = name.partition("/")[0]
    return _build_built_in_embedder(stored) if stored in settings.BUILT_IN_EMBEDDERS else get_embedder_for_new_vectors()


def get_embedder_for_new_vectors() -> TextEmbedder:
    """Return the embedder for new vectors: the one in the settings, else the one chosen in the admin, else a default.

    Raises: as :func:`get_embedder`.
    """
    if settings.EMBEDDER:
        return get_embedder()
    _, options = _read_stored_embedder()
    return (
        build_chosen_embedder(options)
        if options
        else _build_built_in_embedder(MULTILINGUAL_E5 if find_weights() else MINILM)
    )


def build_chosen_embedder(options: Mapping[str, Any]) -> TextEmbedder:
    """Return the embedder that a row's ``Embedder.options`` describe. Raises: ImproperlyConfigured."""
    return _build_chosen_embedder(json.dumps(dict(options), sort_keys=True))


@functools.cache
def _build_chosen_embedder(options: str) -> TextEmbedder:
    arguments = json.loads(options)
    if "built_in" in arguments:
        return _build_built_in_embedder(arguments["built_in"])
    try:
        return LocalEmbedder(cache_dir=settings.DATA_DIR / "models", **arguments)
    except (TypeError, EmbedderMisconfigured) as error:
        raise ImproperlyConfigured(str(error)) from error


forget_candidates = _build_chosen_embedder.cache_clear


def load_chosen_embedder() -> None:
    """Load the embedder that was chosen in the admin, unless the settings name one.

    Raises: ImproperlyConfigured, EmbeddingFailed, EmbedderMisconfigured.
    """
    _, options = _read_stored_embedder()
    if options and not settings.EMBEDDER:
        build_chosen_embedder(options).prepare()
        _build_site_embedder.cache_clear()


def describe_embedder_choice() -> str:
    """Return a notice if the site uses all-MiniLM-L6-v2 although no administrator chose it; otherwise "".

    Raises: as :func:`get_embedder`.
    """
    if settings.EMBEDDER or get_embedder() is _build_built_in_embedder(MULTILINGUAL_E5) or _read_stored_embedder()[1]:
        return ""
    if get_embedder() is get_embedder_for_new_vectors():
        return (
            f"The embedder is {MINILM}, for English: the weights of {MULTILINGUAL_E5}, for about 100 languages, come "
            "for Linux on x86-64 only. To end this notice, set EMBEDDING_MODEL=all-MiniLM-L6-v2."
        )
    return (
        f"The embedder is {MINILM}, whose vectors this site has. New sites use {MULTILINGUAL_E5}, for about 100 "
        "languages: `manage.py reembed` moves this one. To stay, set EMBEDDING_MODEL=all-MiniLM-L6-v2."
    )


@functools.cache
def _build_built_in_embedder(name: str) -> TextEmbedder:
    built: TextEmbedder = build_backend("BUILT_IN_EMBEDDERS", name)
    return built


def _read_stored_embedder() -> tuple[str, dict[str, object]]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT name, options FROM retrieval_embedder WHERE is_active")
            row = cursor.fetchone()
    except DatabaseError as error:
        raise EmbeddingFailed(f"Which embedder's vectors are stored cannot be looked up: {error}") from error
    if row is None:
        return "", {}
    return row[0], row[1] if isinstance(row[1], dict) else json.loads(row[1])


def _forget_changed_embedder(setting: str, **_: Any) -> None:
    if setting == "EMBEDDER":
        _build_site_embedder.cache_clear()


setting_changed.connect(_forget_changed_embedder)
