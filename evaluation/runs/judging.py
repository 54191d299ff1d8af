"""The model judge's word on the answers of a run, beside the figures that need no model.

An error is stored as an error, never as a number, and the run goes on: its own figures do not depend on the judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.conf import settings

from chat.generators.extractive import NAME as EXTRACTIVE
from evaluation import conf
from evaluation.judgements.budget import JobMeter
from evaluation.judges.exceptions import JudgeBudgetSpent, JudgeError, UnusableJudgement
from evaluation.judges.types import Case
from evaluation.models import AnswerResult, EvaluationRun, Judgement

if TYPE_CHECKING:
    from chat.types import ContextSource
    from evaluation.judges.types import Judge

# An answer is judged within this time, or not: the worker must be done before its task runs out of time.
LONGEST_SECONDS = 5 * 60.0
# A judge that was away so often in a row is not waited for again in this attempt.
MOST_UNAVAILABLE = 3


class ModelJudge:
    """Judges the answers of one run, each once, with the expected answer as reference."""

    def __init__(self, run: EvaluationRun) -> None:
        self._run = run
        self._unavailable = 0
        self._given_up = ""

    def judge(self, result: AnswerResult, sources: Sequence[ContextSource]) -> None:
        """Writes scores and errors into the result. Raises: LeaseLost."""
        if self._given_up:
            result.judge_error = self._given_up
            return
        case = Case(
            question=result.text,
            answer=result.answer,
            sources=tuple(source for source in sources if source.block.content.strip()),
            refused=result.refused,
            reference=result.expected_answer,
            is_quoted=result.generator == EXTRACTIVE,
        )
        try:
            judge = conf.judge(Judgement.Judge.MODEL, JobMeter(self._run, LONGEST_SECONDS))
            result.judge = judge.name
            for metric in judge.metrics(case):
                result.judged[metric] = _judge(judge, metric, case)
            self._unavailable = 0
        except JudgeError as error:
            result.judge_error = str(error)
            self._unavailable += 1
            if isinstance(error, JudgeBudgetSpent) or self._unavailable >= MOST_UNAVAILABLE:
                self._given_up = str(error)


def judge_of(run: EvaluationRun) -> ModelJudge | None:
    """The judge of the run's answers; None when the settings ask for none. One that they do not name is an error."""
    return ModelJudge(run) if settings.EVALUATE_WITH_MODEL else None


def _judge(judge: Judge, metric: str, case: Case) -> dict[str, float | str]:
    """Raises: JudgeError when no other metric would fare better."""
    try:
        measured = judge.measure(metric, case)
    except UnusableJudgement as error:
        return {"error": str(error)}
    return {"score": measured.score, "reason": measured.reason}
