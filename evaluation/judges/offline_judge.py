"""Judge every answer by rules and vectors of the embedder, without a language model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from chat.answering.checking.citations import blank_out_spans, find_markers, remove_markers
from chat.answering.checking.support import DoubtReason, estimate_groundedness, extract_assertion
from chat.answering.checking.verification import verify_citations
from chat.answering.checking.words import find_stems
from chat.pages.doubts import describe_reason
from chat.types import CheckedStatement, VerificationResult
from core.exceptions import RagsiteError
from evaluation.judges.types import JudgementCase, JudgeUnavailable, MeasuredScore, NotMeasurable
from retrieval.index import embedder_choice
from retrieval.index.closeness import describe_missing_calibration, find_current_calibration
from retrieval.text.sentences import split_sentences

# The relevancy of a sentence to a question is the mean of the closeness of their vectors and the share of the
# question's words in the sentence or its headings. Its AUROC is 0.987 (SQuAD 2) and 0.998 (XQuAD in Dutch).

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrieval.index.closeness import Calibration

    Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]

# On 240 questions each of SQuAD 2 and XQuAD (Dutch), about 90 % of the right sentences have a higher score than this,
# and no wrong sentence has.
THRESHOLD = 0.4


@dataclass(frozen=True, slots=True)
class SentenceRelevancy:
    """The sentence of a text that is most relevant to a question.

    ``score``, ``similarity`` and ``coverage`` are from 0 to 1.
    """

    sentence: str
    score: float
    similarity: float
    coverage: float


def compute_relevancies(
    question: str, texts: Sequence[tuple[str, str]], embed: Embed, calibration: Calibration
) -> list[SentenceRelevancy]:
    """Return for each (headings, text) pair the sentence that is most relevant to the question, with its score.

    The first of equally relevant sentences is returned. The score of a text without words is 0. ``embed`` returns unit
    vectors of shape (texts, dimension).
    """
    sentences = [
        (number, heading, text[start:end])
        for number, (heading, text) in enumerate(texts)
        for start, end, _break in split_sentences(text, 0, len(text))
    ]
    best = [SentenceRelevancy("", 0.0, 0.0, 0.0) for _ in texts]
    if not sentences:
        return best
    vectors = embed([question, *(sentence for _number, _heading, sentence in sentences)])
    similarities = np.clip(
        [calibration.convert_to_closeness(cosine) for cosine in (vectors[1:] @ vectors[0]).tolist()], 0.0, 1.0
    )
    asked = set(find_stems(question))
    for (number, heading, sentence), similarity in zip(sentences, similarities.tolist(), strict=True):
        coverage = len(asked & set(find_stems(f"{heading} {sentence}"))) / len(asked) if asked else similarity
        score = (similarity + coverage) / 2
        if score > best[number].score or not best[number].sentence:
            best[number] = SentenceRelevancy(sentence, score, similarity, coverage)
    return best


QUOTED_CHARACTERS = 300
MOST_QUOTED = 3

NAME = "rules, version 1"
_EMPHASIS = re.compile(r"\*\*|__|`")


def _select_measured_statements(verified: VerificationResult) -> Sequence[CheckedStatement]:
    statements = [statement for statement in verified.statements if statement.support is not None]
    if not statements:
        raise NotMeasurable("The answer is in another language than its passages, so their words cannot be compared.")
    return statements


def _describe_statement(answer: str, statement: CheckedStatement) -> dict[str, object]:
    return {
        "sentence": _shorten(answer[statement.start : statement.end]),
        "markers": list(statement.markers),
        "support": statement.support,
        "supported": statement.supported,
        "reasons": list(statement.reasons),
        "best_marker": statement.best.marker if statement.best else None,
    }


def _shorten(text: str) -> str:
    text = " ".join(_EMPHASIS.sub("", remove_markers(text)).split())
    return text if len(text) <= QUOTED_CHARACTERS else text[: QUOTED_CHARACTERS - 1] + "…"


class OfflineJudge:
    name = NAME

    def __init__(self) -> None:
        self._verified: VerificationResult | None = None

    def list_metrics(self, case: JudgementCase) -> tuple[str, ...]:
        of_context = ("contextual_relevancy",) if case.sources else ()
        if case.refused or not case.sources:
            return of_context
        markers = find_markers(case.answer) if case.markers is None else case.markers
        plain = blank_out_spans(case.answer, [(marker.start, marker.end) for marker in markers])
        said = (plain[one.start : one.end] for one in self._verify_case_citations(case).statements)
        is_claimed = not case.is_quoted and any(map(extract_assertion, said))
        of_claims = ("groundedness", "citation_support") if is_claimed else ()
        return (*of_claims, "answer_relevancy", *of_context)

    def measure(self, metric: str, case: JudgementCase) -> MeasuredScore:
        compute: dict[str, Callable[[JudgementCase], MeasuredScore]] = {
            "groundedness": self._measure_groundedness,
            "citation_support": self._measure_citation_support,
            "answer_relevancy": self._measure_answer_relevancy,
            "contextual_relevancy": self._measure_contextual_relevancy,
        }
        try:
            return compute[metric](case)
        except RagsiteError as error:
            raise _make_embedder_error(error) from error

    def _measure_groundedness(self, case: JudgementCase) -> MeasuredScore:
        statements = _select_measured_statements(self._verify_case_citations(case))
        score = estimate_groundedness(statement.support for statement in statements if statement.support is not None)
        reason = f"The passages support each of {len(statements)} sentences."
        if unsupported := [statement for statement in statements if not statement.supported]:
            quoted = " ".join(
                f"“{_shorten(case.answer[one.start : one.end])}” ({', '.join(map(describe_reason, one.reasons))})."
                for one in unsupported[:MOST_QUOTED]
            )
            reason = f"The passages do not support {len(unsupported)} of {len(statements)} sentences: {quoted}"
        return MeasuredScore(score, reason, 0.5, [_describe_statement(case.answer, one) for one in statements])

    def _measure_citation_support(self, case: JudgementCase) -> MeasuredScore:
        """Return the share of the answer's sentences that are supported by a passage that they cite.

        A sentence without a citation counts as not supported.
        """
        statements = _select_measured_statements(self._verify_case_citations(case))
        uncited = [DoubtReason.UNCITED in statement.reasons for statement in statements]
        supported = [bool(one.supported) and not bare for one, bare in zip(statements, uncited, strict=True)]
        details = [
            {**_describe_statement(case.answer, one), "supported": good}
            for one, good in zip(statements, supported, strict=True)
        ]
        reason = f"Of {len(statements)} sentences, {sum(supported)} are supported by a passage that they cite"
        reason += f"; {sum(uncited)} cite none." if any(uncited) else "."
        return MeasuredScore(sum(supported) / len(statements), reason, 0.8, details)

    def _measure_answer_relevancy(self, case: JudgementCase) -> MeasuredScore:
        (best,) = _find_relevancies(case.question, [("", remove_markers(case.answer, case.markers))])
        if not best.sentence:
            raise NotMeasurable("The answer has no sentence that can be compared with the question.")
        reason = (
            f"Closest to the question, with similarity {best.similarity:.2f} and {best.coverage:.0%} of its words: "
            f"“{_shorten(best.sentence)}”"
        )
        details = [{"sentence": best.sentence, "similarity": best.similarity, "coverage": best.coverage}]
        return MeasuredScore(best.score, reason, THRESHOLD, details)

    def _measure_contextual_relevancy(self, case: JudgementCase) -> MeasuredScore:
        headed = [
            (f"{source.block.best.document_title} {source.block.best.section}", source.block.content)
            for source in case.sources
        ]
        found = _find_relevancies(case.question, headed)
        details = [
            {"marker": source.marker, "sentence": _shorten(one.sentence), "score": one.score}
            for source, one in zip(case.sources, found, strict=True)
        ]
        relevant = sum(one.score >= THRESHOLD for one in found)
        reason = f"{relevant} of {len(found)} passages hold a sentence that bears on the question."
        return MeasuredScore(sum(one.score for one in found) / len(found), reason, THRESHOLD, details)

    def _verify_case_citations(self, case: JudgementCase) -> VerificationResult:
        if self._verified is None:
            try:
                # Without the embedder, the judge fails here, before it has computed a score.
                embedder_choice.get_embedder().embed_query(case.question)
            except RagsiteError as error:
                raise _make_embedder_error(error) from error
            self._verified = verify_citations(case.answer, case.sources, case.markers)
        return self._verified


def _find_relevancies(question: str, texts: Sequence[tuple[str, str]]) -> list[SentenceRelevancy]:
    calibration = find_current_calibration()
    if calibration is None:
        raise JudgeUnavailable(describe_missing_calibration(embedder_choice.get_embedder().name))
    return compute_relevancies(question, texts, embedder_choice.get_embedder().embed_documents, calibration)


def _make_embedder_error(error: RagsiteError) -> JudgeUnavailable:
    return JudgeUnavailable(f"The embedder does not answer: {error}")
