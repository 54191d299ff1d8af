"""The settings of judging: which answers are judged, and by which judge."""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING

from django.conf import settings

from evaluation.judges.exceptions import JudgeUnavailable
from evaluation.models import Judgement
from retrieval.exceptions import ImproperModel

if TYPE_CHECKING:
    from evaluation.judges.types import Judge, Meter

# What a judge's server can be asked for: JSON of a given form, JSON, or nothing but what the prompt says.
RESPONSE_FORMATS = ("json_schema", "json_object", "none")


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
            max_tokens=settings.JUDGE_MAX_TOKENS,
            response_format=settings.JUDGE_RESPONSE_FORMAT,
        )
    except ImproperModel as error:
        raise JudgeUnavailable(str(error)) from error
    return DeepEvalJudge(model, meter)
