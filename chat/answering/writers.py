"""Lists the language models that may write answers, and chooses the model of the next answer."""

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
from core.exceptions import ImproperModel, ModelFailed
from core.language_model.chat_endpoint import ChatEndpoint
from core.user_types import AnyUser
from core.users import groups_of, is_active, is_superuser


def language_models(user: AnyUser | None = None) -> dict[str, LanguageModel]:
    """Return the language models that ``user`` may choose, by name, the default first; without a user, all models.

    The model of OPENAI_BASE_URL and OPENAI_MODEL is included as an unsaved row.
    """
    rows = list(LanguageModel.objects.filter(is_enabled=True))
    names = {row.name for row in rows}
    if rows and user is not None and not is_superuser(user):
        groups = groups_of(user) if is_active(user) else ()
        open_rows = LanguageModel.objects.filter(Q(groups=None) | Q(groups__in=groups))
        open_ids = set(open_rows.values_list("pk", flat=True))
        rows = [row for row in rows if row.pk in open_ids]
    built_in = _built_in()
    if built_in is not None and built_in.name not in names:
        rows.append(built_in)
    rows.sort(key=lambda row: (not row.is_default, row.pk is not None, row.name))
    return {row.name: row for row in rows}


def choosable_models(user: AnyUser) -> list[str]:
    """Return the names that the user can choose between, the default first; empty for a single model."""
    names = list(language_models(user))
    return names if len(names) > 1 else []


def writer_for(user: AnyUser | None, wanted: str = "") -> str:
    """Return the name of the user's writer: the ``wanted`` model, else the default, else EXTRACTIVE.

    Raises: LookupError if the user may not choose the wanted model.
    """
    models = language_models(user)
    if wanted and wanted not in models:
        raise LookupError(wanted)
    return wanted or next(iter(models), EXTRACTIVE)


def writer_name() -> str:
    """Return the default writer's name: the site's default model, or EXTRACTIVE."""
    return writer_for(None)


def generator(name: str = "") -> OpenAICompatibleGenerator | None:
    """Return the language model of this name (empty: the site's default); None if documents are quoted.

    Raises: ModelFailed if the model was removed or its key cannot be decrypted; ImproperlyConfigured.
    """
    name = name or writer_name()
    if name == EXTRACTIVE:
        return None
    row = language_models().get(name)
    if row is None:
        raise ModelFailed(f"There is no language model named {name}.")
    try:
        prices = (row.price_prompt, row.price_completion) if row.price_prompt or row.price_completion else None
        return _generator(row.name, row.endpoint, row.context_tokens, prices)
    except SecretUnreadable as error:
        raise ModelFailed(f"The API key of {name} cannot be read. {error}") from error
    except ImproperModel as error:
        raise ImproperlyConfigured(f"OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL: {error}") from error


@functools.lru_cache(maxsize=64)
def _generator(
    name: str, endpoint: ChatEndpoint, context_tokens: int, prices: tuple[float, float] | None
) -> OpenAICompatibleGenerator:
    """Return a cached generator, because it remembers failures and the parameters that its server refuses."""
    limits = AnswerLimits(
        silence_seconds=settings.OPENAI_TIMEOUT_SECONDS,
        total_seconds=settings.OPENAI_TOTAL_SECONDS,
        answer_tokens=settings.OPENAI_MAX_TOKENS,
        context_tokens=context_tokens,
        prompt_tokens=settings.OPENAI_PROMPT_TOKENS,
    )
    may_refuse = settings.CHAT_MODEL_MAY_REFUSE
    return OpenAICompatibleGenerator(endpoint, limits, prices, name=name, may_refuse=may_refuse)


def _built_in() -> LanguageModel | None:
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


def _forget(setting: str, **_: Any) -> None:
    if setting.startswith(("OPENAI_", "CHAT_MODEL_")):
        _generator.cache_clear()


setting_changed.connect(_forget)
