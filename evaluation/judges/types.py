"""The case that is judged, the judge, its result, and its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chat.types import ContextSource
from evaluation.exceptions import EvaluationError


class JudgeError(EvaluationError):
    """Base of everything that keeps a judge from giving a score."""


class UnusableJudgement(JudgeError):
    """The judge answered, but with nothing that a score can be made of. The other metrics can still be measured."""


class NotMeasurable(UnusableJudgement):
    """The metric cannot tell anything of this answer, however often it is tried."""


class JudgeUnavailable(JudgeError):
    """The judge cannot be asked now: not configured, away, late, or without vectors. No other metric fares better."""


class JudgeBudgetSpent(JudgeError):
    """The day's tokens are consumed. Trying again today does not help."""


@dataclass(frozen=True, slots=True)
class Case:
    """An answer with what it was made from. ``answer`` has its markers; ``reference`` is the expected answer, or empty.

    ``refused`` says that the answer is none: it tells that the documents do not hold one. ``is_quoted`` says that it
    quotes passages word for word, or was computed over the rows of a table: it claims nothing that its sources might
    not support.
    """

    question: str
    answer: str
    sources: tuple[ContextSource, ...]
    refused: bool = False
    reference: str = ""
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """A score in [0, 1] with its reason in words. ``details``: an object for each sentence, claim or passage."""

    score: float
    reason: str
    threshold: float | None
    details: Sequence[Mapping[str, Any]] = ()


class Judge(Protocol):
    """Measures one case. An instance serves one judgement."""

    name: str

    def metrics(self, case: Case) -> tuple[str, ...]:
        """The metrics that can be told of this case, in the order of measuring; none when there is nothing to judge."""

    def measure(self, metric: str, case: Case) -> Measured:
        """Raises: JudgeError, whatever goes wrong; never a score that was not judged."""


class Meter(Protocol):
    """Watches what a judge consumes."""

    def check(self) -> None:
        """Called before each request. Raises: BudgetSpent, LeaseLost or JudgeUnavailable when it must not be made."""

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Called after each request, also one whose answer is of no use."""
