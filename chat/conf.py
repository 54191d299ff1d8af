"""The configured answer generators, one instance per process."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.signals import setting_changed

from chat.generators.extractive import ExtractiveGenerator
from chat.generators.openai_compatible import OpenAICompatibleGenerator

if TYPE_CHECKING:
    from chat.protocols import AnswerGenerator


@functools.cache
def generator() -> AnswerGenerator:
    """The model when one is configured, else the extractive answerer."""
    if settings.OPENAI_BASE_URL and settings.OPENAI_MODEL:
        return OpenAICompatibleGenerator(
            settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.OPENAI_MODEL, settings.OPENAI_TIMEOUT_SECONDS
        )
    return fallback()


@functools.cache
def fallback() -> AnswerGenerator:
    """What answers when the model does not."""
    return ExtractiveGenerator()


def _forget(setting: str, **_: Any) -> None:
    if setting.startswith("OPENAI_"):
        generator.cache_clear()


setting_changed.connect(_forget)
