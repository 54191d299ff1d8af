"""What the kinds of runs share: their input, their protocol, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationQuestion, EvaluationRun
from evaluation.runs.measures import Result
from retrieval import conf
from retrieval.ranking.profile import NO_RERANKER
from retrieval.search.profiles import NamedProfile
from retrieval.search.trace import SearchTrace, StageStatus
from retrieval.types import SearchFilters


class NotMeasured(EvaluationError):
    """The run cannot be measured; another attempt may do."""


class Unmeasurable(EvaluationError):
    """The run cannot be measured, however often it is tried."""


@dataclass(frozen=True, slots=True)
class RunInput:
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

    def reason_not_to_trust(self, results: Sequence[Any]) -> str:
        """Why the figures of these results are not to be relied on; empty when they are."""


def search_errors(trace: SearchTrace) -> str:
    """What went wrong in the parts of a search, also in one that answered in part; empty when nothing did."""
    errors = [retriever.error for retriever in trace.retrievers]
    if trace.rerank is not None and trace.rerank.status is not StageStatus.OFF:
        errors.append(trace.rerank.error)
    return "; ".join(filter(None, errors))


def require_whole(question: EvaluationQuestion, trace: SearchTrace) -> None:
    """Raises: NotMeasured when a part of the profile's search failed: what was found is another profile's result."""
    if errors := search_errors(trace):
        raise NotMeasured(f"The question {question.text!r} was not searched with all of the profile: {errors}")


def prepare_reranker(name: str) -> None:
    """Load the reranker's model, which may take longer than a search allows."""
    if name != NO_RERANKER:
        conf.reranker(name).prepare()
