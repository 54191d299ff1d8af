"""An answers run: does the chat say what a right answer says, cite it, and refuse what the documents do not answer?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import async_to_sync

from chat import conf as chat_conf
from chat.answering import answer
from chat.protocols import PartialAnswer
from chat.types import AnswerToken, Completed, Failed, Searched, VerifiedCitation
from evaluation.models import AnswerResult, EvaluationQuestion
from evaluation.runs import agreement
from evaluation.runs.agreement import Expected
from evaluation.runs.judging import judge_of
from evaluation.runs.measurement import NotMeasured, RunInput, Unmeasurable, require_whole
from evaluation.sets.expectations import MOST_POINTS, grade
from retrieval.exceptions import InvalidQuery
from retrieval.search.pipeline import search
from retrieval.search.profiles import NamedProfile
from retrieval.types import SearchFilters, Turn

QUOTE_CHARACTERS = 500


@dataclass(slots=True)
class Reply:
    """``end`` is None when the answer broke off, ``searched`` when the question was turned away unsearched, and
    ``first_ms`` when there was no token. Milliseconds count from the question."""

    draft: PartialAnswer = field(default_factory=PartialAnswer)
    searched: Searched | None = None
    end: Completed | Failed | None = None
    first_ms: float | None = None
    last_ms: float = 0.0


async def reply_to(
    question: str, filters: SearchFilters, profile: NamedProfile | None = None, history: Sequence[Turn] = ()
) -> Reply:
    """What a visitor would get who asks this after ``history``; nothing is saved."""
    reply = Reply()
    started = time.perf_counter()
    async for event in answer(question, filters, draft=reply.draft, profile=profile, history=history):
        match event:
            case Searched():
                reply.searched = event
            case AnswerToken():
                if reply.first_ms is None:
                    reply.first_ms = (time.perf_counter() - started) * 1000
            case Completed() | Failed():
                reply.end = event
    reply.last_ms = (time.perf_counter() - started) * 1000
    return reply


class AnswerMeasurement:
    """Implements ``Measurement``, with the site's generator, and its model judge where there is one."""

    unresolved = 0

    def __init__(self, task: RunInput) -> None:
        self._task = task
        self._generator = chat_conf.writer_name()
        self._judge = judge_of(task.run)

    def warm_up(self, question: EvaluationQuestion) -> None:
        """Searches only: a model's answer costs money."""
        try:
            search(question.text, self._task.filters, profile=self._task.profile)
        except InvalidQuery as error:
            raise Unmeasurable(f"The question {question.text!r} cannot be searched: {error}") from error

    def ask(self, question: EvaluationQuestion) -> AnswerResult:
        reply = async_to_sync(reply_to)(question.text, self._task.filters, self._task.profile)
        if not isinstance(reply.end, Completed):
            problem = reply.end.message if reply.end is not None else "The answer broke off."
            raise NotMeasured(f"The question {question.text!r} was not answered: {problem}")
        if reply.searched is not None:
            require_whole(question, reply.searched.trace)
        result = self._result(question, reply, reply.end)
        self._measure(result, reply.end)
        self._grade(result, question, reply.end)
        # What stands in for the model says nothing about it: the run is not relied on, so no judge is paid for it.
        if self._judge is not None and not result.is_fallback:
            sources = reply.searched.sources if reply.searched is not None else ()
            self._judge.judge(result, sources)
        return result

    def reason_not_to_trust(self, results: Sequence[Any]) -> str:
        stood_in = [result for result in results if result.is_fallback]
        if not stood_in:
            return ""
        return (
            f"{len(stood_in)} of {len(results)} questions were not answered by {self._generator} but by "
            f"{stood_in[0].generator}, which stood in for it: run it again."
        )

    def _result(self, question: EvaluationQuestion, reply: Reply, end: Completed) -> AnswerResult:
        result = AnswerResult(
            run=self._task.run,
            question=question,
            text=question.text,
            expected_answer=question.expected_answer,
            expects_refusal=question.expects_refusal,
            answer=end.text,
            refused=end.refused,
            citations=[_citation(one) for one in end.citations],
            generator=end.generator,
            is_fallback=end.generator not in ("", self._generator),
            notice=end.notice,
            first_token_milliseconds=None if reply.first_ms is None else round(reply.first_ms, 2),
            milliseconds=round(reply.last_ms, 2),
        )
        usage = end.usage or reply.draft.usage
        if usage is not None:
            result.prompt_tokens, result.completion_tokens = usage.prompt_tokens, usage.completion_tokens
            result.cost = usage.cost
        return result

    def _measure(self, result: AnswerResult, end: Completed) -> None:
        expected = Expected(result.expected_answer, result.expects_refusal)
        result.agreement = agreement.agreement(end.text, refused=end.refused, expected=expected)
        result.cited = agreement.cited(end.citations, refused=end.refused, expected=expected)
        result.groundedness = agreement.groundedness(end.statements, refused=end.refused)
        result.refusal = agreement.refusal(refused=end.refused, expected=expected)

    def _grade(self, result: AnswerResult, question: EvaluationQuestion, end: Completed) -> None:
        """Counts what the question says of its answer beside an expected one."""
        expected = question.expectations
        if not expected.says_of_text:
            return
        sources = {passage.source for passage in question.expected_passages.all() if passage.grade > 0}
        cites_expected = any(citation.passage.source in sources for citation in end.citations)
        graded = grade(end.text, refused=end.refused, expected=expected, cites_expected=cites_expected)
        result.expectations = graded.points / MOST_POINTS
        unmet = {
            "missing": list(graded.missing),
            "forbidden": list(graded.forbidden),
            "too_long": graded.length - expected.longest if expected.longest and graded.is_too_long else 0,
        }
        result.unmet = {name: what for name, what in unmet.items() if what}


def _citation(citation: VerifiedCitation) -> dict[str, Any]:
    passage = citation.passage
    return {
        "marker": citation.marker,
        "source": passage.source,
        "title": passage.document_title,
        "section": passage.section,
        "quote": citation.quote[:QUOTE_CHARACTERS],
    }
