"""System checks of the judge's settings."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, register

from evaluation import conf
from retrieval.exceptions import ImproperModel
from retrieval.language_models.chat_model import ChatModel


@register()
def judge_can_be_asked(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if settings.JUDGE_BASE_URL or settings.JUDGE_MODEL:
        if not conf.has_judge_model():
            messages.append(Error("JUDGE_BASE_URL and JUDGE_MODEL belong together: set both.", id="evaluation.E001"))
        else:
            try:
                ChatModel(settings.JUDGE_BASE_URL, settings.JUDGE_API_KEY, settings.JUDGE_MODEL, 1.0)
            except ImproperModel as error:
                messages.append(Error(f"The judge cannot be asked: {error}", id="evaluation.E001"))
    elif settings.EVALUATE_WITH_MODEL:
        messages.append(
            checks.Warning(
                "EVALUATE_WITH_MODEL is on, but no judge is configured: every answer will be shown as not judged.",
                hint="Set JUDGE_BASE_URL and JUDGE_MODEL, or turn EVALUATE_WITH_MODEL off.",
                id="evaluation.W001",
            )
        )
    return messages


@register()
def numbers_make_sense(**_: Any) -> list[CheckMessage]:
    formats = ", ".join(conf.RESPONSE_FORMATS)
    positive = settings.JUDGE_ATTEMPTS >= 1 and settings.JUDGE_TIMEOUT_SECONDS > 0 and settings.JUDGE_MAX_TOKENS >= 1
    requirements = {
        "JUDGE_SAMPLE_RATE must lie between 0 and 1.": 0 <= settings.JUDGE_SAMPLE_RATE <= 1,
        "JUDGE_DAILY_BUDGET_TOKENS must not be negative; 0: no limit.": settings.JUDGE_DAILY_BUDGET_TOKENS >= 0,
        "JUDGE_ATTEMPTS, JUDGE_TIMEOUT_SECONDS and JUDGE_MAX_TOKENS must be positive.": positive,
        f"JUDGE_RESPONSE_FORMAT is {settings.JUDGE_RESPONSE_FORMAT!r}; it must be one of {formats}.": (
            settings.JUDGE_RESPONSE_FORMAT in conf.RESPONSE_FORMATS
        ),
    }
    return [
        Error(message, id=f"evaluation.E{number:03}")
        for number, (message, is_met) in enumerate(requirements.items(), start=2)
        if not is_met
    ]
