"""What the kinds of runs share: what they are given, what they must do, and how they say that it cannot be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, EvaluationRun
from evaluation.runs.measures import Result
from retrieval.search.profiles import NamedProfile
from retrieval.types import LegStatus, SearchFilters, SearchTrace


class NotMeasured(EvaluationError):
    """The run cannot be measured; another attempt may do."""


class Unmeasurable(EvaluationError):
    """The run cannot be measured, however often it is tried."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a run asks, and with what."""

    run: EvaluationRun
    profile: NamedProfile
    collection_id: int
    filters: SearchFilters
    questions: Sequence[EvaluationQuestion]


class Measurement(Protocol):
    """One kind of run, about to be measured."""

    unresolved: int
    """Of what is expected, so much is no longer in the documents."""

    def warm_up(self, question: EvaluationQuestion) -> None:
        """Loads models and opens connections, so that the first question is not slower than the others.

        Raises: NotMeasured, Unmeasurable.
        """

    def ask(self, question: EvaluationQuestion) -> Result:
        """The question's result, not yet saved. Raises: NotMeasured, Unmeasurable, LeaseLost."""

    def distrust(self, results: Sequence[Any]) -> str:
        """Why the figures of these results are not to be relied on; empty when they are."""


def require_whole(question: EvaluationQuestion, trace: SearchTrace) -> None:
    """Raises: NotMeasured when a part of the profile's search failed: what was found is another profile's result."""
    errors = [leg.error for leg in trace.legs]
    if trace.rerank is not None and trace.rerank.status is not LegStatus.OFF:
        errors.append(trace.rerank.error)
    if any(errors):
        told = "; ".join(filter(None, errors))
        raise NotMeasured(f"The question {question.text!r} was not searched with all of the profile: {told}")
