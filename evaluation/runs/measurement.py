"""Ask one question of a run, of either kind (search or answers), and measure the result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync
from django.conf import settings

from chat.answering import writers
from chat.answering.extractive import NAME as EXTRACTIVE
from chat.answering.pipeline import answer_question
from chat.types import AnswerDraft, AnswerToken, CompletedEvent, FailedEvent, VerifiedCitation
from evaluation import conf
from evaluation.exceptions import EvaluationError
from evaluation.expectations import MOST_POINTS, grade_answer
from evaluation.judgements import JobUsageMeter
from evaluation.judges.types import JudgeBudgetSpent, JudgeError, JudgementCase, UnusableJudgement
from evaluation.models import AnswerResult, EvaluationQuestion, EvaluationRun, Judgement, QuestionResult
from evaluation.payload_types import MeasuredCitationPayload, MetricJudgementPayload, UnmetExpectationsPayload
from evaluation.runs import agreement
from evaluation.runs.results import find_run_measure
from evaluation.sets.resolution import find_expected_chunks
from evaluation.statistics import METRICS, TOP_K, build_judged_ranking
from retrieval import backends
from retrieval.exceptions import InvalidQuery
from retrieval.profile_settings import NO_RERANKER
from retrieval.search.pipeline import search
from retrieval.search.profiles.profiles import NamedProfile
from retrieval.search.trace import SearchResult, SearchTrace, StageStatus
from retrieval.types import SearchFilters, Turn

if TYPE_CHECKING:
    from chat.types import ContextSource
    from evaluation.judges.types import Judge


class MeasurementFailed(EvaluationError):
    """An error: the question or run cannot be measured now. Another attempt may succeed."""


class UnmeasurableRun(EvaluationError):
    """An error: the run cannot ask its questions, and another attempt would not help."""


@dataclass(frozen=True, slots=True)
class RunInput:
    run: EvaluationRun
    profile: NamedProfile
    collection_id: int
    filters: SearchFilters
    questions: Sequence[EvaluationQuestion]


def describe_search_errors(trace: SearchTrace) -> str:
    errors = [retriever.error for retriever in trace.retrievers]
    if trace.rerank is not None and trace.rerank.status is not StageStatus.OFF:
        errors.append(trace.rerank.error)
    return "; ".join(filter(None, errors))


def raise_if_degraded(question: EvaluationQuestion, trace: SearchTrace) -> None:
    """Raise MeasurementFailed if a part of the search failed: the result would not show the profile's quality."""
    if errors := describe_search_errors(trace):
        raise MeasurementFailed(f"The question {question.text!r} was not searched with all of the profile: {errors}")


def prepare_reranker(name: str) -> None:
    if name != NO_RERANKER:
        backends.get_reranker(name).prepare()


class SearchMeasurement:
    """Searches the questions of an evaluation set and measures the results.

    ``unresolved`` is the number of expected passages that the documents no longer contain.
    """

    def __init__(self, task: RunInput) -> None:
        self._task = task
        settings = task.profile.settings
        # recall@50 needs 50 results, of which the profile's own top_k are the first.
        self._top_k = min(TOP_K, max(settings.depth, settings.candidate_multiplier * settings.top_k))
        expected = [one for question in task.questions for one in question.expected_passages.all()]
        self._expectations = find_expected_chunks(task.collection_id, expected)
        self.unresolved = sum(not one.is_resolved for one in self._expectations.values() if one.grade > 0)

    def warm_up(self, question: EvaluationQuestion) -> None:
        """Load models and open connections, so that the first timed question is not slower.

        Raises: MeasurementFailed, UnmeasurableRun.
        """
        self._search(question)

    def ask(self, question: EvaluationQuestion) -> QuestionResult:
        """Return the measured result of a question, without saving it. Raises: MeasurementFailed, UnmeasurableRun."""
        started = time.perf_counter()
        found = self._search(question)
        milliseconds = (time.perf_counter() - started) * 1000
        passages = list(question.expected_passages.all())
        expectations = [self._expectations[one.pk] for one in passages]
        judged = build_judged_ranking(
            [(hit.passage.chunk_id, hit.passage.document_id) for hit in found.hits], expectations
        )
        result = QuestionResult(
            run=self._task.run,
            question=question,
            text=question.text,
            expected=[
                {
                    "source": one.source,
                    "quote": one.quote[:QUOTE_CHARACTERS],
                    "grade": one.grade,
                    "rank": judged.ranks[one.pk],
                    "resolved": expectation.is_resolved,
                }
                for one, expectation in zip(passages, expectations, strict=True)
            ],
            milliseconds=round(milliseconds, 2),
        )
        for key, metric in METRICS.items():
            setattr(result, find_run_measure(self._task.run.kind, key).field, metric(judged.ranking, judged.grades))
        return result

    def find_unreliable_reason(self, results: Sequence[Any]) -> str:
        return ""

    def _search(self, question: EvaluationQuestion) -> SearchResult:
        try:
            result = search(question.text, self._task.filters, profile=self._task.profile, top_k=self._top_k)
        except InvalidQuery as error:
            raise UnmeasurableRun(f"The question {question.text!r} cannot be searched: {error}") from error
        raise_if_degraded(question, result.trace)
        return result


QUOTE_CHARACTERS = 500


@dataclass(slots=True)
class MeasuredReply:
    """A measured reply. Times are milliseconds since the question.

    - ``searched``: the question with the sources that were found; None if there was no search.
    - ``end``: the last event; None if the answer broke off.
    - ``first_ms``: the time of the first token; None if no token came.
    - ``last_ms``: the time of the end.
    """

    searched: AnswerDraft | None = None
    end: CompletedEvent | FailedEvent | None = None
    first_ms: float | None = None
    last_ms: float = 0.0

    @property
    def other_texts_on_answer_page(self) -> tuple[str, ...]:
        passages = tuple(each.text for each in self.end.alternatives) if isinstance(self.end, CompletedEvent) else ()
        table = self.searched.table if self.searched is not None else None
        return passages if table is None else (*passages, "\n".join(" ".join(row) for row in table.rows))


async def measure_reply(
    question: str,
    filters: SearchFilters,
    profile: NamedProfile | None = None,
    history: Sequence[Turn] = (),
    instructions: str | None = None,
) -> MeasuredReply:
    """Return the reply that a visitor would get to this question after ``history``. It is not saved.

    If ``instructions`` is None, the active instructions are used.
    """
    reply = MeasuredReply()
    started = time.perf_counter()
    async for event in answer_question(question, filters, profile=profile, history=history, instructions=instructions):
        match event:
            case AnswerDraft():
                reply.searched = event
            case AnswerToken():
                if reply.first_ms is None:
                    reply.first_ms = (time.perf_counter() - started) * 1000
            case CompletedEvent() | FailedEvent():
                reply.end = event
    reply.last_ms = (time.perf_counter() - started) * 1000
    return reply


class AnswerMeasurement:
    unresolved = 0

    def __init__(self, task: RunInput) -> None:
        self._task = task
        self._generator = writers.get_default_writer_name()
        self._judge = ModelJudge(task.run) if settings.EVALUATE_WITH_MODEL else None

    def warm_up(self, question: EvaluationQuestion) -> None:
        """Run a search to load the models, without an answer, which could cost money."""
        try:
            search(question.text, self._task.filters, profile=self._task.profile)
        except InvalidQuery as error:
            raise UnmeasurableRun(f"The question {question.text!r} cannot be searched: {error}") from error

    def ask(self, question: EvaluationQuestion) -> AnswerResult:
        told = self._task.run.instructions
        reply = async_to_sync(measure_reply)(
            question.text, self._task.filters, self._task.profile, instructions=told.text if told else ""
        )
        if not isinstance(reply.end, CompletedEvent):
            problem = reply.end.message if reply.end is not None else "The answer broke off."
            raise MeasurementFailed(f"The question {question.text!r} was not answered: {problem}")
        if reply.searched is not None:
            raise_if_degraded(question, reply.searched.trace)
        result = self._make_result(question, reply, reply.end)
        self._grade_answer_text(result, question, reply.end, reply.other_texts_on_answer_page)
        if self._judge is not None and not result.is_fallback:
            sources = reply.searched.sources if reply.searched is not None else ()
            self._judge.judge(result, sources)
        return result

    def find_unreliable_reason(self, results: Sequence[Any]) -> str:
        stood_in = [result for result in results if result.is_fallback]
        if not stood_in:
            return ""
        return (
            f"{len(stood_in)} of {len(results)} questions were not answered by {self._generator} but by "
            f"{stood_in[0].generator}, which stood in for it: run it again."
        )

    def _make_result(self, question: EvaluationQuestion, reply: MeasuredReply, end: CompletedEvent) -> AnswerResult:
        result = AnswerResult(
            run=self._task.run,
            question=question,
            text=question.text,
            expected_answer=question.expected_answer,
            expects_refusal=question.expects_refusal,
            answer=end.text,
            refused=end.refused,
            citations=[_describe_citation(one) for one in end.citations],
            generator=end.generator,
            is_fallback=end.generator not in ("", self._generator),
            notice=end.notice,
            first_token_milliseconds=None if reply.first_ms is None else round(reply.first_ms, 2),
            milliseconds=round(reply.last_ms, 2),
            agreement=agreement.measure_agreement(
                end.text,
                refused=end.refused,
                expected=question.expected_answer,
                expects_refusal=question.expects_refusal,
            ),
            groundedness=agreement.measure_groundedness(end.statements, refused=end.refused),
            refusal=float(end.refused == question.expects_refusal),
        )
        if (usage := end.usage) is not None:
            result.prompt_tokens, result.completion_tokens = usage.prompt_tokens, usage.completion_tokens
            result.cost = usage.cost
        return result

    def _grade_answer_text(
        self, result: AnswerResult, question: EvaluationQuestion, end: CompletedEvent, beside: Sequence[str]
    ) -> None:
        expected = question.expectations
        if not expected.has_text_expectations:
            return
        sources = {passage.source for passage in question.expected_passages.all() if passage.grade > 0}
        cites_expected = any(citation.passage.source in sources for citation in end.citations)
        graded = grade_answer(
            end.text,
            refused=end.refused,
            expected=expected,
            cites_expected=cites_expected,
            beside=beside,
        )
        result.expectations = graded.points / MOST_POINTS
        unmet: UnmetExpectationsPayload = {}
        if graded.missing:
            unmet["missing"] = list(graded.missing)
        if graded.forbidden:
            unmet["forbidden"] = list(graded.forbidden)
        if expected.longest and graded.is_too_long:
            unmet["too_long"] = graded.length - expected.longest
        result.unmet = unmet


def _describe_citation(citation: VerifiedCitation) -> MeasuredCitationPayload:
    passage = citation.passage
    return {
        "marker": citation.marker,
        "source": passage.source,
        "title": passage.document_title,
        "section": passage.section,
        "quote": citation.quote[:QUOTE_CHARACTERS],
    }


LONGEST_SECONDS = 5 * 60.0
# After this many failures in a row, the judge is not asked again in this attempt.
MOST_UNAVAILABLE = 3


class ModelJudge:
    def __init__(self, run: EvaluationRun) -> None:
        self._run = run
        self._unavailable = 0
        self._given_up = ""

    def judge(self, result: AnswerResult, sources: Sequence[ContextSource]) -> None:
        """Store the judge's scores and errors for an answer in ``result``. Raises: LeaseLost."""
        if self._given_up:
            result.judge_error = self._given_up
            return
        case = JudgementCase(
            question=result.text,
            answer=result.answer,
            sources=tuple(source for source in sources if source.block.content.strip()),
            refused=result.refused,
            reference=result.expected_answer,
            is_quoted=result.generator == EXTRACTIVE,
        )
        try:
            judge = conf.build_judge(Judgement.Judge.MODEL, JobUsageMeter(self._run, LONGEST_SECONDS))
            result.judge = judge.name
            for metric in judge.list_metrics(case):
                result.judged[metric] = _measure_metric(judge, metric, case)
            self._unavailable = 0
        except JudgeError as error:
            result.judge_error = str(error)
            self._unavailable += 1
            if isinstance(error, JudgeBudgetSpent) or self._unavailable >= MOST_UNAVAILABLE:
                self._given_up = str(error)


def _measure_metric(judge: Judge, metric: str, case: JudgementCase) -> MetricJudgementPayload:
    try:
        measured = judge.measure(metric, case)
    except UnusableJudgement as error:
        return {"error": str(error)}
    return {"score": measured.score, "reason": measured.reason}
