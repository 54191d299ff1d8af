"""The judge that needs no model but the embedder, and judges every answer: deterministic metrics in DeepEval's form.

The same answer always gets the same score. Each metric serves one case: DeepEval's test case holds the texts, but not
which sentence cites which passage.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from chat.answering.citations import remove_markers
from chat.answering.support import SupportReason, groundedness
from chat.answering.verification import verify
from chat.answering.words import stems
from chat.debugging.steps import reason_label
from chat.types import CheckedStatement, Verified
from evaluation.judges.deepeval_adapter import BaseMetric, LLMTestCase, SingleTurnParams, deepeval_case
from evaluation.judges.types import Case, JudgeUnavailable, Measured, NotMeasurable
from retrieval import conf
from retrieval.exceptions import RetrievalError
from retrieval.index.closeness import current_calibration, missing_calibration
from retrieval.text.sentences import split_sentences

if TYPE_CHECKING:
    from retrieval.index.closeness import Calibration

# How relevant a text is to a question, by its sentences.
#
# A sentence's relevancy is the mean of two signals in [0, 1]: the closeness of its vector to the question's
# (:class:`Calibration`), and the share of the question's words that it holds, in itself or in the headings above it.
# On 240 questions each of SQuAD 2 (English) and XQuAD (Dutch), with the sentence that answers and one from another
# passage, the mean tells the two apart with an AUROC of 0.987 and 0.998 with multilingual-e5-small (the closeness
# alone 0.977 and 0.991, the words alone 0.982 and 0.971), and of 0.998 and 0.977 with all-MiniLM-L6-v2.

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrieval.index.closeness import Calibration

    Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

# Of the answering sentences 90 % and 89 % lie above it, of the others 100 % below; with all-MiniLM-L6-v2 94 % in both
# languages, and 100 % and 89 %.
THRESHOLD = 0.4


@dataclass(frozen=True, slots=True)
class Relevancy:
    """The sentence of a text that bears most on the question. ``score``, ``similarity`` and ``coverage``: [0, 1]."""

    sentence: str
    score: float
    similarity: float
    coverage: float


def relevancies(
    question: str, texts: Sequence[tuple[str, str]], embed: Embed, calibration: Calibration
) -> list[Relevancy]:
    """The best sentence of each text, given as (headings above it, text); ties go to the earlier sentence.

    A text without words has relevancy 0. ``embed`` gives unit vectors, shape (texts, dimension).
    """
    sentences = [
        (number, heading, text[start:end])
        for number, (heading, text) in enumerate(texts)
        for start, end, _break in split_sentences(text, 0, len(text))
    ]
    best = [Relevancy("", 0.0, 0.0, 0.0) for _ in texts]
    if not sentences:
        return best
    vectors = embed([question, *(sentence for _number, _heading, sentence in sentences)])
    similarities = np.clip([calibration.closeness(cosine) for cosine in (vectors[1:] @ vectors[0]).tolist()], 0.0, 1.0)
    asked = set(stems(question))
    for (number, heading, sentence), similarity in zip(sentences, similarities.tolist(), strict=True):
        coverage = len(asked & set(stems(f"{heading} {sentence}"))) / len(asked) if asked else similarity
        score = (similarity + coverage) / 2
        if score > best[number].score or not best[number].sentence:
            best[number] = Relevancy(sentence, score, similarity, coverage)
    return best


QUOTED_CHARACTERS = 300
MOST_QUOTED = 3

NAME = "rules, version 1"
_EMPHASIS = re.compile(r"\*\*|__|`")


class OfflineMetric(BaseMetric):  # type: ignore[no-untyped-call]
    """A metric computed here. ``details``: an object for each sentence or passage looked at."""

    async_mode = False
    evaluation_model = None
    include_reason = True
    using_native_model = False
    label = ""
    # DeepEval's own annotation says that this is a type.
    _required_params: Any = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)  # type: ignore[no-untyped-call]

    def __init__(self, case: Case, threshold: float | None) -> None:
        self.case = case
        self.threshold = threshold
        self.details: list[Mapping[str, Any]] = []

    @abstractmethod
    def judge(self, test_case: LLMTestCase) -> tuple[float, str]:
        """Score and reason; fills ``details``. Raises: JudgeError."""

    def measure(self, test_case: LLMTestCase, *_args: Any, **_kwargs: Any) -> float:
        score, self.reason = self.judge(test_case)
        self.score = score
        self.success = self.is_successful()
        return score

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        return self.measure(test_case, *args, **kwargs)

    @property
    def __name__(self) -> str:
        return self.label


class Groundedness(OfflineMetric):
    """How likely it is that the passages support every sentence of the answer."""

    label = "Groundedness"
    _required_params = [SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.RETRIEVAL_CONTEXT]

    def __init__(self, case: Case, verified: Verified) -> None:
        # As a probability: rather not than so.
        super().__init__(case, 0.5)
        self.verified = verified

    def judge(self, test_case: LLMTestCase) -> tuple[float, str]:
        statements = _measure(self.verified)
        self.details = [_statement(self.case.answer, statement) for statement in self.verified.statements]
        score = groundedness(statement.support for statement in statements if statement.support is not None)
        unsupported = [statement for statement in statements if not statement.supported]
        if not unsupported:
            return score, f"The passages support each of {len(statements)} sentences."
        quoted = " ".join(
            f"“{_shorten(self.case.answer[one.start : one.end])}” ({', '.join(map(reason_label, one.reasons))})."
            for one in unsupported[:MOST_QUOTED]
        )
        return score, f"The passages do not support {len(unsupported)} of {len(statements)} sentences: {quoted}"


class CitationSupport(OfflineMetric):
    """The share of sentences that the passages they cite support; one that cites none is not supported."""

    label = "Citation Support"
    _required_params = [SingleTurnParams.ACTUAL_OUTPUT, SingleTurnParams.RETRIEVAL_CONTEXT]

    def __init__(self, case: Case, verified: Verified) -> None:
        super().__init__(case, 0.8)
        self.verified = verified

    def judge(self, test_case: LLMTestCase) -> tuple[float, str]:
        statements = _measure(self.verified)
        # Not by its markers: an item of a list may be cited at the end of the list.
        uncited = [SupportReason.UNCITED in statement.reasons for statement in statements]
        supported = [bool(one.supported) and not bare for one, bare in zip(statements, uncited, strict=True)]
        self.details = [
            {**_statement(self.case.answer, one), "supported": good}
            for one, good in zip(statements, supported, strict=True)
        ]
        reason = f"Of {len(statements)} sentences, {sum(supported)} are supported by a passage that they cite"
        reason += f"; {sum(uncited)} cite none." if any(uncited) else "."
        return sum(supported) / len(statements), reason


class AnswerRelevancy(OfflineMetric):
    """How far the answer's best sentence bears on the question."""

    label = "Answer Relevancy"
    _required_params = [SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT]

    def __init__(self, case: Case, embed: Embed, calibration: Calibration) -> None:
        super().__init__(case, THRESHOLD)
        self.embed, self.calibration = embed, calibration

    def judge(self, test_case: LLMTestCase) -> tuple[float, str]:
        (best,) = relevancies(test_case.input, [("", test_case.actual_output or "")], self.embed, self.calibration)
        if not best.sentence:
            raise NotMeasurable("The answer has no sentence that could be held against the question.")
        self.details = [{"sentence": best.sentence, "similarity": best.similarity, "coverage": best.coverage}]
        return best.score, (
            f"Closest to the question, with similarity {best.similarity:.2f} and {best.coverage:.0%} of its words: "
            f"“{_shorten(best.sentence)}”"
        )


class ContextualRelevancy(OfflineMetric):
    """How far the passages bear on the question, on average, each by its best sentence."""

    label = "Contextual Relevancy"
    _required_params = [SingleTurnParams.INPUT, SingleTurnParams.RETRIEVAL_CONTEXT]

    def __init__(self, case: Case, embed: Embed, calibration: Calibration) -> None:
        super().__init__(case, THRESHOLD)
        self.embed, self.calibration = embed, calibration

    def judge(self, test_case: LLMTestCase) -> tuple[float, str]:
        sources = self.case.sources
        if not sources:
            raise NotMeasurable("There are no passages that could be held against the question.")
        headed = [
            (f"{source.block.best.document_title} {source.block.best.section}", source.block.content)
            for source in sources
        ]
        found = relevancies(test_case.input, headed, self.embed, self.calibration)
        self.details = [
            {"marker": source.marker, "sentence": _shorten(one.sentence), "score": one.score}
            for source, one in zip(sources, found, strict=True)
        ]
        relevant = sum(one.score >= THRESHOLD for one in found)
        return (
            sum(one.score for one in found) / len(found),
            f"{relevant} of {len(found)} passages hold a sentence that bears on the question.",
        )


class Refusal(OfflineMetric):
    """1 for an answer that says that the documents do not answer, 0 for any other; neither is good or bad."""

    label = "Refusal"
    _required_params = [SingleTurnParams.INPUT]

    def __init__(self, case: Case) -> None:
        super().__init__(case, None)

    def judge(self, test_case: LLMTestCase) -> tuple[float, str]:
        if self.case.refused:
            return 1.0, "The answer says that the documents do not answer the question."
        return 0.0, "The question was answered."


def _measure(verified: Verified) -> Sequence[CheckedStatement]:
    """The statements whose support could be measured. Raises: NotMeasurable when there are none."""
    statements = [statement for statement in verified.statements if statement.support is not None]
    if not statements:
        raise NotMeasurable("The answer is in another language than its passages, so its words tell nothing.")
    return statements


def _statement(answer: str, statement: CheckedStatement) -> dict[str, Any]:
    return {
        "sentence": _shorten(answer[statement.start : statement.end]),
        "markers": list(statement.markers),
        "support": statement.support,
        "supported": statement.supported,
        "reasons": list(statement.reasons),
        "best_marker": statement.best_marker,
    }


def _shorten(text: str) -> str:
    """The beginning of the text for a reason, without markers and Markdown's emphasis."""
    text = " ".join(_EMPHASIS.sub("", remove_markers(text)).split())
    return text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 1] + "…"


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
        is_claimed = not case.is_quoted and bool(self._verify(case).statements)
        of_claims = ("groundedness", "citation_support") if is_claimed else ()
        return (*of_claims, "answer_relevancy", *of_context, "refusal")

    def measure(self, metric: str, case: Case) -> Measured:
        try:
            measuring = self._metric(metric, case)
            score = measuring.measure(deepeval_case(case))
        except RetrievalError as error:
            raise _without_embedder(error) from error
        return Measured(score, str(measuring.reason), measuring.threshold, measuring.details)

    def _metric(self, metric: str, case: Case) -> OfflineMetric:
        match metric:
            case "groundedness":
                return Groundedness(case, self._verify(case))
            case "citation_support":
                return CitationSupport(case, self._verify(case))
            case "answer_relevancy":
                return AnswerRelevancy(case, conf.embedder().embed_documents, _calibration())
            case "contextual_relevancy":
                return ContextualRelevancy(case, conf.embedder().embed_documents, _calibration())
            case "refusal":
                return Refusal(case)
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


def _calibration() -> Calibration:
    """Raises: JudgeUnavailable. On an unknown scale a figure would say nothing."""
    calibration = current_calibration()
    if calibration is None:
        raise JudgeUnavailable(missing_calibration(conf.embedder().name))
    return calibration


def _without_embedder(error: RetrievalError) -> JudgeUnavailable:
    """Words alone would give another figure under the same name."""
    return JudgeUnavailable(f"The embedder does not answer: {error}")
