from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from core.exceptions import LanguageModelMisconfigured
from core.language_model.chat_model import ChatModel
from evaluation.judges.offline_judge import OfflineJudge
from evaluation.judges.types import JudgeUnavailable
from evaluation.models import Judgement

if TYPE_CHECKING:
    from evaluation.judges.types import Judge, UsageMeter


def is_sampled(answer_id: uuid.UUID) -> bool:
    """Return whether the language model judges this answer. It judges the share JUDGE_SAMPLE_RATE of answers."""
    drawn = int.from_bytes(hashlib.sha256(b"judge" + answer_id.bytes).digest()[:8])
    return bool(drawn < settings.JUDGE_SAMPLE_RATE * 2**64)


def build_judge(kind: str, meter: UsageMeter) -> Judge:
    """Return the judge of this kind. Raises: JudgeUnavailable if the settings configure no such judge.

    Call this only in workers, because it imports a large package.
    """
    if kind == Judgement.Judge.OFFLINE:
        return OfflineJudge()
    if not settings.EVALUATE_WITH_MODEL:
        raise JudgeUnavailable("No judge is configured: set JUDGE_BASE_URL and JUDGE_MODEL.")

    from evaluation.judges.deepeval_judge import DeepEvalJudge
    from evaluation.judges.judge_model import JudgeModel

    model = JudgeModel(
        settings.JUDGE_BASE_URL, settings.JUDGE_API_KEY, settings.JUDGE_MODEL, settings.JUDGE_TIMEOUT_SECONDS
    )
    return DeepEvalJudge(model, meter)


@register()
def check_judge_settings(**_: Any) -> list[CheckMessage]:
    if not settings.JUDGE_BASE_URL and not settings.JUDGE_MODEL:
        return []
    if not (settings.JUDGE_BASE_URL and settings.JUDGE_MODEL):
        return [Error("JUDGE_BASE_URL and JUDGE_MODEL belong together: set both.", id="evaluation.E001")]
    try:
        ChatModel(settings.JUDGE_BASE_URL, settings.JUDGE_API_KEY, settings.JUDGE_MODEL, 1.0)
    except LanguageModelMisconfigured as error:
        return [Error(f"The judge cannot be asked: {error}", id="evaluation.E001")]
    return []


@register()
def check_judge_limits(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if not 0 <= settings.JUDGE_SAMPLE_RATE <= 1:
        messages.append(Error("JUDGE_SAMPLE_RATE must lie between 0 and 1.", id="evaluation.E002"))
    if settings.JUDGE_DAILY_BUDGET_TOKENS < 0:
        messages.append(Error("JUDGE_DAILY_BUDGET_TOKENS must not be negative; 0: no limit.", id="evaluation.E003"))
    return messages
