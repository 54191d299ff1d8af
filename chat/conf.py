"""The configured language model that writes answers, one instance a process."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

from chat.answering.extractive import NAME as EXTRACTIVE
from chat.answering.openai_compatible import AnswerLimits, OpenAICompatibleGenerator, Prices
from retrieval.exceptions import ImproperModel

if TYPE_CHECKING:
    from chat.protocols import AnswerGenerator


@functools.cache
def generator() -> AnswerGenerator | None:
    """The configured language model; None without one: the documents are quoted then. Raises: ImproperlyConfigured."""
    if settings.OPENAI_BASE_URL and settings.OPENAI_MODEL:
        try:
            return OpenAICompatibleGenerator(
                settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, settings.OPENAI_MODEL, _limits(), _prices(),
                may_refuse=settings.CHAT_MODEL_MAY_REFUSE,
            )  # fmt: skip
        except ImproperModel as error:
            raise ImproperlyConfigured(f"OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL: {error}") from error
    return None


def writer_name() -> str:
    """The name of who writes answers: the model's, or that of quoting."""
    model = generator()
    return model.name if model is not None else EXTRACTIVE


def _limits() -> AnswerLimits:
    return AnswerLimits(
        silence_seconds=settings.OPENAI_TIMEOUT_SECONDS,
        total_seconds=settings.OPENAI_TOTAL_SECONDS,
        answer_tokens=settings.OPENAI_MAX_TOKENS,
        context_tokens=settings.OPENAI_CONTEXT_TOKENS,
        prompt_tokens=settings.OPENAI_PROMPT_TOKENS,
    )


def _prices() -> Prices | None:
    prices = Prices(settings.OPENAI_PRICE_PROMPT, settings.OPENAI_PRICE_COMPLETION)
    return prices if prices.prompt or prices.completion else None


def _forget(setting: str, **_: Any) -> None:
    if setting.startswith(("OPENAI_", "CHAT_MODEL_")):
        generator.cache_clear()


setting_changed.connect(_forget)
