from __future__ import annotations

import functools
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.db.models import Q

from chat.answering.extractive import NAME as EXTRACTIVE
from chat.answering.openai_compatible import AnswerLimits, OpenAICompatibleGenerator
from chat.models import LanguageModel
from core.encryption import SecretUnreadable
from core.exceptions import LanguageModelMisconfigured, ModelFailed
from core.language_model.chat_endpoint import ChatEndpoint
from core.read_once import get_or_read
from core.user_types import AnyUser
from core.users import is_active, is_superuser, list_groups


def list_language_models(user: AnyUser | None = None) -> dict[str, LanguageModel]:
    """Return the language models that ``user`` may choose, by name, the default first.

    If ``user`` is None, every model is returned. The model of the site's settings is an unsaved row.
    """
    rows = list(get_or_read("language models", lambda: list(LanguageModel.objects.filter(is_enabled=True))))
    names = {row.name for row in rows}
    if rows and user is not None and not is_superuser(user):
        groups = list_groups(user) if is_active(user) else ()
        open_rows = LanguageModel.objects.filter(Q(groups=None) | Q(groups__in=groups))
        open_ids = set(open_rows.values_list("pk", flat=True))
        rows = [row for row in rows if row.pk in open_ids]
    built_in = _build_built_in_model()
    if built_in is not None and built_in.name not in names:
        rows.append(built_in)
    rows.sort(key=lambda row: (not row.is_default, row.pk is not None, row.name))
    return {row.name: row for row in rows}


def list_choosable_models(user: AnyUser) -> list[str]:
    """Return the names of the models to offer to the user, the default first; empty if there is only one."""
    names = list(list_language_models(user))
    return names if len(names) > 1 else []


def choose_writer(user: AnyUser | None, wanted: str = "") -> str:
    """Return the name of the writer (a model, or EXTRACTIVE to quote) for an answer: ``wanted`` or the default.

    Raises: LookupError if the user may not choose ``wanted``.
    """
    models = list_language_models(user)
    if wanted and wanted not in models:
        raise LookupError(wanted)
    return wanted or next(iter(models), EXTRACTIVE)


def get_default_writer_name() -> str:
    return choose_writer(None)


def find_generator(name: str = "") -> OpenAICompatibleGenerator | None:
    """Return the generator for the language model with this name; an empty name means the site's default.

    The result is None for EXTRACTIVE, because the site then quotes documents. Raises: ModelFailed if the model was
    removed or its key cannot be decrypted; ImproperlyConfigured.
    """
    name = name or get_default_writer_name()
    if name == EXTRACTIVE:
        return None
    row = list_language_models().get(name)
    if row is None:
        raise ModelFailed(f"There is no language model named {name}.")
    try:
        prices = (row.price_prompt, row.price_completion) if row.price_prompt or row.price_completion else None
        return _build_generator(row.name, row.endpoint, row.context_tokens, prices)
    except SecretUnreadable as error:
        raise ModelFailed(f"The API key of {name} cannot be read. {error}") from error
    except LanguageModelMisconfigured as error:
        raise ImproperlyConfigured(f"OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL: {error}") from error


@functools.lru_cache(maxsize=64)
def _build_generator(
    name: str, endpoint: ChatEndpoint, context_tokens: int, prices: tuple[float, float] | None
) -> OpenAICompatibleGenerator:
    """Build a generator. It is cached, because it remembers failed calls and refused parameters."""
    limits = AnswerLimits(
        silence_seconds=settings.OPENAI_TIMEOUT_SECONDS,
        total_seconds=settings.OPENAI_TOTAL_SECONDS,
        answer_tokens=settings.OPENAI_MAX_TOKENS,
        context_tokens=context_tokens,
        prompt_tokens=settings.OPENAI_PROMPT_TOKENS,
    )
    may_refuse = settings.CHAT_MODEL_MAY_REFUSE
    return OpenAICompatibleGenerator(endpoint, limits, prices, name=name, may_refuse=may_refuse)


def _build_built_in_model() -> LanguageModel | None:
    if not (settings.OPENAI_BASE_URL and settings.OPENAI_MODEL):
        return None
    row = LanguageModel(
        name=settings.OPENAI_MODEL,
        base_url=settings.OPENAI_BASE_URL,
        model=settings.OPENAI_MODEL,
        context_tokens=settings.OPENAI_CONTEXT_TOKENS,
        price_prompt=settings.OPENAI_PRICE_PROMPT,
        price_completion=settings.OPENAI_PRICE_COMPLETION,
    )
    row.api_key = settings.OPENAI_API_KEY
    return row


def _clear_generator_cache(setting: str, **_: Any) -> None:
    if setting.startswith(("OPENAI_", "CHAT_MODEL_")):
        _build_generator.cache_clear()


setting_changed.connect(_clear_generator_cache)
