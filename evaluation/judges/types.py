from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chat.answering.checking.citations import CitationMarker
from chat.types import ContextSource
from evaluation.exceptions import EvaluationError


class JudgeError(EvaluationError):
    """Base class of the errors that prevent a judge from giving a score."""


class UnusableJudgement(JudgeError):
    """An error: the judge's reply contains no usable score. Other metrics can still be measured."""


class NotMeasurable(UnusableJudgement):
    """An error: the metric does not apply to this answer."""


class JudgeUnavailable(JudgeError):
    """An error: the judge does not work now, so it cannot measure any metric."""


class JudgeBudgetSpent(JudgeError):
    """An error: the day's budget of tokens is used up."""


@dataclass(frozen=True, slots=True)
class JudgementCase:
    """An answer to judge, with its sources.

    ``answer`` includes the markers (``[1]``); if ``markers`` is None, every ``[n]`` is a marker. ``reference`` is the
    expected answer, or empty. If ``is_quoted``, the answer quotes its sources.
    """

    question: str
    answer: str
    sources: tuple[ContextSource, ...]
    refused: bool = False
    reference: str = ""
    is_quoted: bool = False
    markers: tuple[CitationMarker, ...] | None = None


@dataclass(frozen=True, slots=True)
class MeasuredScore:
    """A judge's score, 0 to 1, with its reason. ``details`` has an object for each sentence, claim or passage."""

    score: float
    reason: str
    threshold: float | None
    details: Sequence[Mapping[str, Any]] = ()


class Judge(Protocol):
    name: str

    def list_metrics(self, case: JudgementCase) -> tuple[str, ...]:
        """Return the metrics that apply to this case, in the order in which to measure them."""

    def measure(self, metric: str, case: JudgementCase) -> MeasuredScore:
        """Return the score of the metric. Raises: JudgeError if the judge cannot give a score."""


class UsageMeter(Protocol):
    def check_limits(self) -> None:
        """Check the limits before a request. Raises: JudgeBudgetSpent, LeaseLost or JudgeUnavailable."""

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Count the tokens of a request, even if the reply to it is unusable."""
