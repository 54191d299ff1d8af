"""The judge that needs no model beside the embedder, and judges every answer."""

from __future__ import annotations

from chat.grounding.verification import verify
from chat.types import Verified
from evaluation.judges import offline_metrics
from evaluation.judges.deepeval_adapter import deepeval_case
from evaluation.judges.exceptions import JudgeUnavailable
from evaluation.judges.types import Case, Measured
from retrieval import conf
from retrieval.exceptions import RetrievalError

NAME = "rules, version 1"


class OfflineJudge:
    """Implements ``Judge`` for one case. Deterministic, given the embedder."""

    name = NAME

    def __init__(self) -> None:
        self._verified: Verified | None = None

    def metrics(self, case: Case) -> tuple[str, ...]:
        """Of a refusal, only what was found is measured; of an answer that claims nothing, only what it is about."""
        of_context = ("contextual_relevancy",) if case.sources else ()
        if case.refused or not case.sources:
            return (*of_context, "refusal")
        of_claims = ("groundedness", "citation_support") if self._verify(case).statements else ()
        return (*of_claims, "answer_relevancy", *of_context, "refusal")

    def measure(self, metric: str, case: Case) -> Measured:
        try:
            measuring = self._metric(metric, case)
            score = measuring.measure(deepeval_case(case))
        except RetrievalError as error:
            raise _without_embedder(error) from error
        return Measured(score, str(measuring.reason), measuring.threshold, measuring.details)

    def _metric(self, metric: str, case: Case) -> offline_metrics.OfflineMetric:
        match metric:
            case "groundedness":
                return offline_metrics.Groundedness(case, self._verify(case))
            case "citation_support":
                return offline_metrics.CitationSupport(case, self._verify(case))
            case "answer_relevancy":
                return offline_metrics.AnswerRelevancy(case, conf.embedder().embed_documents)
            case "contextual_relevancy":
                return offline_metrics.ContextualRelevancy(case, conf.embedder().embed_documents)
            case "refusal":
                return offline_metrics.Refusal(case)
        raise ValueError(f"The rules have no metric named {metric!r}.")

    def _verify(self, case: Case) -> Verified:
        """Raises: JudgeUnavailable."""
        if self._verified is None:
            try:
                # Without the embedder nothing would be measured, and each sentence look as if it were foreign.
                conf.embedder().embed_query(case.question)
            except RetrievalError as error:
                raise _without_embedder(error) from error
            self._verified = verify(case.answer, case.sources)
        return self._verified


def _without_embedder(error: RetrievalError) -> JudgeUnavailable:
    """Words alone would give another figure under the same name."""
    return JudgeUnavailable(f"The embedder does not answer: {error}")
