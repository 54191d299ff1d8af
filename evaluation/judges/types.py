"""A case to judge, the judge, its result, and its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chat.answering.checking.citations import Marker
from chat.types import ContextSource
from evaluation.exceptions import EvaluationError


class JudgeError(EvaluationError):
    """Base: the judge gave no score."""


class UnusableJudgement(JudgeError):
    """The judge's answer cannot be used for a score. The other metrics can still be measured."""


class NotMeasurable(UnusableJudgement):
    """The metric does not apply to this answer; another attempt does not help."""


class JudgeUnavailable(JudgeError):
    """The judge cannot be asked now: not configured, away, late, or without vectors. Other metrics would fail too."""


class JudgeBudgetSpent(JudgeError):
    """The day's tokens are spent. Another attempt today does not help."""


@dataclass(frozen=True, slots=True)
class Case:
    """An answer with its sources. ``answer`` includes the markers; ``reference`` is the expected answer, or empty.

    ``markers`` are those of a text that a model wrote; None: every ``[n]`` is one.

    ``is_quoted``: the answer quotes passages word for word, or was computed over a table, so its sources support it.
    """

    question: str
    answer: str
    sources: tuple[ContextSource, ...]
    refused: bool = False
    reference: str = ""
    is_quoted: bool = False
    markers: tuple[Marker, ...] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """A score in [0, 1] with its reason in words. ``details``: an object for each sentence, claim or passage."""

    score: float
    reason: str
    threshold: float | None
    details: Sequence[Mapping[str, Any]] = ()


class Judge(Protocol):
    """Measures one case. There is an instance for each judgement."""

    name: str

    def metrics(self, case: Case) -> tuple[str, ...]:
        """The metrics that apply to this case, in the order of measuring; empty if there is nothing to judge."""

    def measure(self, metric: str, case: Case) -> Measured:
        """Raises: JudgeError for every failure; it never makes up a score."""


class Meter(Protocol):
    """Counts and limits the tokens of a judge."""

    def check(self) -> None:
        """Called before each request. Raises: JudgeBudgetSpent, LeaseLost or JudgeUnavailable to prevent it."""

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Called after each request, also if its answer is unusable."""
