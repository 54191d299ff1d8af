"""Ask another product the questions of a set over OpenAI's protocol, and grade its answers like this site's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from core.exceptions import ModelFailed
from core.language_model.chat_model import ChatModel
from evaluation.expectations import MOST_POINTS, grade_answer
from evaluation.models import AnswerResult, EvaluationQuestion, EvaluationRun, RunKind
from evaluation.payload_types import RunSummaryPayload
from evaluation.runs.agreement import measure_agreement
from evaluation.runs.results import summarise_results
from retrieval.text.sentences import split_sentences
from retrieval.text.word_lists import read_phrases

MOST_TOKENS = 2000
REFUSING_WORDS = read_phrases("answers", "refusing")


@dataclass(frozen=True, slots=True)
class ProductReply:
    question: str
    text: str = ""
    refused: bool = False
    milliseconds: float = 0.0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class ProductComparison:
    """A comparison of this site (``ours``) with another product (``theirs``).

    The figures are for the questions that both answered. ``replies`` are all replies of the other product.
    """

    ours: RunSummaryPayload
    theirs: RunSummaryPayload
    replies: Sequence[ProductReply]

    @property
    def refusal_count(self) -> int:
        return sum(reply.refused for reply in self.replies)

    @property
    def failures(self) -> list[ProductReply]:
        return [reply for reply in self.replies if reply.failure]


def compare_products(run: EvaluationRun, other: ChatModel, report: Callable[[int, int], None]) -> ProductComparison:
    """Ask the ``other`` product each question of a finished run with answers, and compare the figures.

    ``report`` gets the numbers of asked and of all questions. Raises: ModelFailed if there is no reply.
    """
    results = list(run.answer_results.select_related("question"))
    pairs = [(result, result.question) for result in results if result.question is not None]
    replies = []
    for number, (_result, question) in enumerate(pairs):
        report(number, len(pairs))
        replies.append(_ask_other_product(other, question.text))
    answered = [(*pair, reply) for pair, reply in zip(pairs, replies, strict=True) if not reply.failure]
    if not answered:
        raise ModelFailed(replies[0].failure if replies else "The run has no questions.")
    ours = (_build_result(run, one, each.answer, each.milliseconds, refused=each.refused) for each, one, _ in answered)
    theirs = (_build_result(run, one, each.text, each.milliseconds, refused=each.refused) for _, one, each in answered)
    return ProductComparison(
        summarise_results(RunKind.ANSWERS, [*ours]), summarise_results(RunKind.ANSWERS, [*theirs]), replies
    )


def _ask_other_product(other: ChatModel, question: str) -> ProductReply:
    started = time.perf_counter()
    try:
        text = other.reply([{"role": "user", "content": question}], MOST_TOKENS).text
    except ModelFailed as error:
        return ProductReply(question, failure=str(error))
    milliseconds = (time.perf_counter() - started) * 1000
    return ProductReply(question, text, is_refusal(text), milliseconds)


def is_refusal(text: str, words: Iterable[str] = REFUSING_WORDS) -> bool:
    """Return whether the first sentence of a reply says that there is no answer; True for an empty reply."""
    sentence = next(split_sentences(text, 0, len(text)), None)
    if sentence is None:
        return True
    first = text[sentence[0] : sentence[1]].casefold().replace("’", "'")
    return any(each in first for each in words)


def _build_result(
    run: EvaluationRun, question: EvaluationQuestion, text: str, milliseconds: float, *, refused: bool
) -> AnswerResult:
    expected = question.expectations
    graded = grade_answer(text, refused=refused, expected=expected) if expected.has_text_expectations else None
    return AnswerResult(
        run=run,
        question=question,
        text=question.text,
        answer=text,
        refused=refused,
        milliseconds=milliseconds,
        agreement=measure_agreement(
            text, refused=refused, expected=question.expected_answer, expects_refusal=question.expects_refusal
        ),
        expectations=None if graded is None else graded.points / MOST_POINTS,
        refusal=float(refused == question.expects_refusal),
    )
