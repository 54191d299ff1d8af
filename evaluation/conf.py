"""The settings of judging, with their checks: which answers are judged, and by which judge."""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from evaluation.judges.types import JudgeUnavailable
from evaluation.models import Judgement
from retrieval.exceptions import ImproperModel
from retrieval.infrastructure.chat_model import ChatModel

if TYPE_CHECKING:
    from evaluation.judges.types import Judge, Meter


def has_judge_model() -> bool:
    """Whether a language model is named that can judge. Never silently the one that answers: it would grade itself."""
    return bool(settings.JUDGE_BASE_URL and settings.JUDGE_MODEL)


def is_sampled(answer_id: uuid.UUID) -> bool:
    """Whether the model judges this answer: the same for the same id, for a share of JUDGE_SAMPLE_RATE of all ids."""
    drawn = int.from_bytes(hashlib.sha256(b"judge" + answer_id.bytes).digest()[:8])
    return bool(drawn < settings.JUDGE_SAMPLE_RATE * 2**64)


def judge(kind: str, meter: Meter) -> Judge:
    """The judge for one judgement. Raises: JudgeUnavailable when none is configured.

    Imports DeepEval, which is for a worker's task alone.
    """
    if kind == Judgement.Judge.OFFLINE:
        from evaluation.judges.offline_judge import OfflineJudge

        return OfflineJudge()
    if not has_judge_model():
        raise JudgeUnavailable("No judge is configured: set JUDGE_BASE_URL and JUDGE_MODEL.")

    from evaluation.judges.deepeval_judge import DeepEvalJudge
    from evaluation.judges.judge_model import JudgeModel

    try:
        model = JudgeModel(
            settings.JUDGE_BASE_URL,
            settings.JUDGE_API_KEY,
            settings.JUDGE_MODEL,
            settings.JUDGE_TIMEOUT_SECONDS,
        )
    except ImproperModel as error:
        raise JudgeUnavailable(str(error)) from error
    return DeepEvalJudge(model, meter)


@register()
def judge_can_be_asked(**_: Any) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if settings.JUDGE_BASE_URL or settings.JUDGE_MODEL:
        if not has_judge_model():
            messages.append(Error("JUDGE_BASE_URL and JUDGE_MODEL belong together: set both.", id="evaluation.E001"))
        else:
            try:
                ChatModel(settings.JUDGE_BASE_URL, settings.JUDGE_API_KEY, settings.JUDGE_MODEL, 1.0)
            except ImproperModel as error:
                messages.append(Error(f"The judge cannot be asked: {error}", id="evaluation.E001"))
    return messages


@register()
def numbers_make_sense(**_: Any) -> list[CheckMessage]:
    requirements = {
        "JUDGE_SAMPLE_RATE must lie between 0 and 1.": 0 <= settings.JUDGE_SAMPLE_RATE <= 1,
        "JUDGE_DAILY_BUDGET_TOKENS must not be negative; 0: no limit.": settings.JUDGE_DAILY_BUDGET_TOKENS >= 0,
    }
    return [
        Error(message, id=f"evaluation.E{number:03}")
        for number, (message, is_met) in enumerate(requirements.items(), start=2)
        if not is_met
    ]
