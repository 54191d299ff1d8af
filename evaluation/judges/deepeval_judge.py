"""Judge with DeepEval's metrics and a language model. A missing judgement is an error, never a score.

DeepEval 4.3.1 has faults against which this module protects:

- Without claims, statements or verdicts, faithfulness and answer relevancy are 1, and context relevancy is 0.
- Unreadable verdicts are dropped.
- `[DEEPEVAL:IMAGE:path]` in a document makes DeepEval read that file or address.
- DeepEval sends telemetry, reads `.env`, and writes files in the current folder.

The import of DeepEval takes over a second and 95 MiB and patches asyncio, so only a worker's task imports this module.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from chat.answering.checking.citations import remove_markers
from core.exceptions import LeaseLost
from evaluation.judges.judge_model import Form, JudgeModel
from evaluation.judges.types import JudgeError, JudgementCase, MeasuredScore, UnusableJudgement, UsageMeter

_SILENCE = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "1",
    "DEEPEVAL_FILE_SYSTEM": "READ_ONLY",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DEEPEVAL_EVAL_MODE": "llm",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "CONFIDENT_OPEN_BROWSER": "0",
    "CONFIDENT_TRACE_FLUSH": "0",
    "CONFIDENT_TRACE_SAMPLE_RATE": "0",
}

if "deepeval" not in sys.modules:
    os.environ.update(_SILENCE)
    # With this key, DeepEval would send results to its maker.
    os.environ.pop("CONFIDENT_API_KEY", None)
    # During the import, DeepEval warns that it has no permission to write files. This output is hidden.
    _said, _level = io.StringIO(), logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(_said), contextlib.redirect_stderr(_said):
            import deepeval  # noqa: F401
    finally:
        logging.disable(_level)

from deepeval.config.settings import get_settings  # noqa: E402
from deepeval.metrics import (  # noqa: E402
    AnswerRelevancyMetric,
    ContextualPrecisionMetric,
    ContextualRecallMetric,
    ContextualRelevancyMetric,
    FaithfulnessMetric,
)
from deepeval.models import DeepEvalBaseLLM  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402

if not get_settings().DEEPEVAL_TELEMETRY_OPT_OUT:
    raise ImportError("DeepEval was imported before its telemetry was turned off.")

logger = logging.getLogger(__name__)

THRESHOLD = 0.5
_METRICS: Mapping[str, Callable[..., Any]] = {
    "faithfulness": FaithfulnessMetric,
    "answer_relevancy": AnswerRelevancyMetric,
    "contextual_relevancy": ContextualRelevancyMetric,
    "contextual_precision": ContextualPrecisionMetric,
    "contextual_recall": ContextualRecallMetric,
}
_EMBEDDED_FILE = re.compile(r"\[(?=DEEPEVAL:)", re.IGNORECASE)


def convert_to_deepeval_case(case: JudgementCase) -> LLMTestCase:
    """Convert the case to DeepEval's form. Remove the markup that would make DeepEval open a file or an address."""
    return LLMTestCase(
        input=_remove_embedded_files(case.question),
        # A judge would read markers as part of the claims.
        actual_output=_remove_embedded_files(remove_markers(case.answer, case.markers)),
        expected_output=_remove_embedded_files(case.reference) or None,
        retrieval_context=[_remove_embedded_files(source.block.content) for source in case.sources],
    )


def _remove_embedded_files(text: str) -> str:
    return _EMBEDDED_FILE.sub("[ ", text)


class DeepEvalJudge:
    def __init__(self, model: JudgeModel, meter: UsageMeter) -> None:
        self.name = model.name
        self._llm = _JudgeLLM(model, meter)

    def list_metrics(self, case: JudgementCase) -> tuple[str, ...]:
        if not case.sources:
            return ()
        if case.refused:
            return ("contextual_relevancy",)
        of_claims = () if case.is_quoted else ("faithfulness",)
        always = (*of_claims, "answer_relevancy", "contextual_relevancy")
        return (*always, "contextual_precision", "contextual_recall") if case.reference else always

    def measure(self, metric: str, case: JudgementCase) -> MeasuredScore:
        measuring = _METRICS[metric](
            model=self._llm, threshold=THRESHOLD, async_mode=False, eval_mode="llm", include_reason=True
        )
        test_case = convert_to_deepeval_case(case)
        if not test_case.retrieval_context or test_case.multimodal:
            raise UnusableJudgement("There are no passages to judge.")
        try:
            measuring.measure(test_case, _show_indicator=False)
        except Exception as error:
            raise _convert_to_judge_error(metric, error) from error
        details = _read_verdicts(metric, measuring, case)
        score = measuring.score
        if measuring.error or score is None or not math.isfinite(score) or not 0 <= score <= 1:
            raise UnusableJudgement(f"DeepEval gave no score between 0 and 1 but {score!r}. {measuring.error or ''}")
        return MeasuredScore(float(score), str(measuring.reason or ""), THRESHOLD, details)


class _JudgeLLM(DeepEvalBaseLLM):  # type: ignore[no-untyped-call]
    def __init__(self, model: JudgeModel, meter: UsageMeter) -> None:
        self._model, self._meter = model, meter
        super().__init__(model.name)

    def load_model(self) -> DeepEvalBaseLLM:
        return self

    def get_model_name(self) -> str:
        return self._model.name

    def generate(self, prompt: str, schema: type[Form] | None = None) -> Form:
        if schema is None:
            raise UnusableJudgement("DeepEval asked the judge without saying what form the answer must have.")
        try:
            return self._model.ask(prompt, schema, self._meter)
        except TypeError as error:
            # DeepEval would catch a TypeError and ask again without a JSON schema.
            raise UnusableJudgement(f"Asking the judge failed: {error}") from error

    async def a_generate(self, prompt: str, schema: type[Form] | None = None) -> Form:
        raise UnusableJudgement("The judge is not asked asynchronously.")


def _convert_to_judge_error(metric: str, error: Exception) -> JudgeError | LeaseLost:
    causes = list(_list_causes(error))
    for cause in causes:
        if isinstance(cause, JudgeError | LeaseLost):
            return cause
    logger.error("DeepEval could not measure %s.", metric, exc_info=error)
    return UnusableJudgement(f"DeepEval could not measure it: {type(causes[-1]).__name__}: {causes[-1]}")


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _read_verdicts(metric: str, measured: Any, case: JudgementCase) -> list[Mapping[str, Any]]:
    """Return the verdict on each item. Raises: UnusableJudgement if an item has no verdict."""
    if metric == "contextual_relevancy":
        judged = list(measured.verdicts_list)
        _require_same_number("passages", len(case.sources), "judgements", len(judged))
        for number, passage in enumerate(judged, start=1):
            if not passage.verdicts:
                raise UnusableJudgement(f"The judge said nothing about passage {number}.")
        return [
            {"marker": source.marker, "statement": verdict.statement, **_read_verdict(verdict)}
            for source, passage in zip(case.sources, judged, strict=True)
            for verdict in passage.verdicts
        ]
    verdicts = list(measured.verdicts)
    if metric == "faithfulness":
        if not measured.truths:
            raise UnusableJudgement("The judge found no facts in the passages.")
        return _pair_with_verdicts("claim", measured.claims, verdicts)
    if metric == "answer_relevancy":
        return _pair_with_verdicts("statement", measured.statements, verdicts)
    if metric == "contextual_precision":
        return _pair_with_verdicts("marker", [source.marker for source in case.sources], verdicts)
    if not verdicts:
        raise UnusableJudgement("The judge said nothing about the expected answer.")
    return [_read_verdict(verdict) for verdict in verdicts]


def _pair_with_verdicts(name: str, judged: Sequence[Any], verdicts: Sequence[Any]) -> list[Mapping[str, Any]]:
    if not judged:
        raise UnusableJudgement(f"The judge named no {name}s, so there is nothing to score.")
    _require_same_number(f"{name}s", len(judged), "verdicts", len(verdicts))
    return [{name: what, **_read_verdict(verdict)} for what, verdict in zip(judged, verdicts, strict=True)]


def _require_same_number(things: str, wanted: int, given: str, got: int) -> None:
    if wanted != got:
        raise UnusableJudgement(f"The judge gave {got} {given} for {wanted} {things}.")


def _read_verdict(verdict: Any) -> dict[str, str]:
    return {"verdict": str(verdict.verdict), "reason": str(verdict.reason or "")}
