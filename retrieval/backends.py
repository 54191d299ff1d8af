from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from core.exceptions import LanguageModelMisconfigured
from retrieval.exceptions import EmbedderMisconfigured

if TYPE_CHECKING:
    from retrieval.protocols import QueryReformulator, QuestionGenerator, Reranker


def build_backend(setting: str, alias: str = "") -> Any:
    """Create the object that a Django setting describes as {"BACKEND": dotted path, "OPTIONS": {...}}.

    If ``alias`` is given, the setting maps aliases to descriptions. Raises: ImproperlyConfigured.
    """
    configured = getattr(settings, setting)
    if alias:
        if alias not in configured:
            raise ImproperlyConfigured(f"{setting} has no {alias!r}: it has {', '.join(sorted(configured)) or 'none'}.")
        configured = configured[alias]
    try:
        return import_string(configured["BACKEND"])(**configured.get("OPTIONS", {}))
    except (ImportError, TypeError, KeyError, LanguageModelMisconfigured, EmbedderMisconfigured) as error:
        raise ImproperlyConfigured(f"{setting} names a backend that cannot be made: {error}") from error


@functools.cache
def get_question_generator() -> QuestionGenerator | None:
    built: QuestionGenerator | None = build_backend("QUESTION_GENERATOR") if settings.QUESTION_GENERATOR else None
    return built


@functools.cache
def get_reformulator() -> QueryReformulator | None:
    built: QueryReformulator | None = build_backend("QUERY_REFORMULATOR") if settings.QUERY_REFORMULATOR else None
    return built


@functools.cache
def get_reranker(name: str) -> Reranker:
    """Return the reranker with this name in the setting RERANKERS. Raises: ImproperlyConfigured."""
    built: Reranker = build_backend("RERANKERS", name)
    return built


_BY_SETTING = {
    "QUESTION_GENERATOR": get_question_generator,
    "QUERY_REFORMULATOR": get_reformulator,
    "RERANKERS": get_reranker,
}


def _clear_backend_cache(setting: str, **_: Any) -> None:
    if setting in _BY_SETTING:
        _BY_SETTING[setting].cache_clear()


setting_changed.connect(_clear_backend_cache)
