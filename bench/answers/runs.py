"""Measure whole answers: ask questions as a visitor would, and judge the replies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from asgiref.sync import sync_to_async

from bench.answers.sets import Question, QuestionKind
from bench.reporting import Report
from bench.statistics import refusal_precision
from chat.answering import writers
from chat.types import FailedEvent
from evaluation.exceptions import UntrustworthyMeasurement
from evaluation.runs.agreement import contains_answer
from evaluation.runs.measurement import measure_reply
from evaluation.runs.queue import corpus_version
from evaluation.statistics import Interval, Percentiles, mean_interval, percentiles
from retrieval.models import Collection
from retrieval.types import SearchFilters


@dataclass(frozen=True, slots=True)
class JudgedReply:
    """The reply to one question.

    - ``quotes``: for each citation, whether the cited words contain a right answer.
    - ``first_ms``: milliseconds until the first token of the answer; None if no token came.
    - ``last_ms``: milliseconds until the end of the reply.
    """

    question: Question
    refused: bool
    generator: str
    quotes: tuple[bool, ...]
    in_sources: bool
    first_ms: float | None
    last_ms: float


@dataclass(frozen=True, slots=True)
class AnswerRun:
    name: str
    outcomes: tuple[JudgedReply, ...]

    @property
    def generator_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(outcome.generator for outcome in self.outcomes if outcome.generator))

    def filter_replies(self, kind: QuestionKind) -> list[JudgedReply]:
        return [outcome for outcome in self.outcomes if outcome.question.kind is kind]

    def compute_quality_figures(self) -> dict[str, Interval | None]:
        """Return the figures by name, in the order of the printed table.

        Citation precision is the share of right citations in an answer, averaged over the answers with citations.
        Citation recall is the share of answerable questions with at least one right citation.
        """
        answerable = self.filter_replies(QuestionKind.ANSWERABLE)
        answered = [outcome for outcome in answerable if not outcome.refused]
        cited = [outcome for outcome in answered if outcome.quotes]
        figures: dict[str, Interval | None] = {
            "answered": _compute_mean([not outcome.refused for outcome in answerable]),
            "answer_in_sources": _compute_mean([outcome.in_sources for outcome in answerable]),
            "citation_precision": _compute_mean([_compute_share(outcome.quotes) for outcome in cited]),
            "citation_recall": _compute_mean([any(outcome.quotes) for outcome in answerable]),
        }
        wrongly = [outcome.refused for outcome in answerable]
        for kind in (QuestionKind.OFF_TOPIC, QuestionKind.ADVERSARIAL):
            rightly = [outcome.refused for outcome in self.filter_replies(kind)]
            figures[f"refusal_recall_{kind}"] = _compute_mean(rightly)
            figures[f"refusal_precision_{kind}"] = refusal_precision(rightly, wrongly) if rightly and wrongly else None
        return figures

    def latency(self) -> dict[str, Percentiles]:
        samples = {
            "first_token": [outcome.first_ms for outcome in self.outcomes if outcome.first_ms is not None],
            "last_token": [outcome.last_ms for outcome in self.outcomes if not outcome.refused],
            "refusal": [outcome.last_ms for outcome in self.outcomes if outcome.refused],
        }
        return {name: percentiles(values) for name, values in samples.items() if values}


def measure_answers(name: str, questions: Sequence[Question], collection: Collection, *, report: Report) -> AnswerRun:
    """Ask each question once, and return the replies.

    The first question is asked twice: the first time only loads the models.

    Raises: UntrustworthyMeasurement if an answer, a retriever or the model failed, or if the collection changed
    meanwhile.
    """
    version = corpus_version(collection.pk)
    filters = SearchFilters(collections=(collection.pk,))
    outcomes = asyncio.run(_ask_all(name, questions, filters, report))
    if corpus_version(collection.pk) != version:
        raise UntrustworthyMeasurement(f"The documents of {name} changed while they were asked: run it again.")
    return AnswerRun(name, tuple(outcomes))


async def _ask_all(
    name: str, questions: Sequence[Question], filters: SearchFilters, report: Report
) -> list[JudgedReply]:
    await _ask(questions[0], filters)
    outcomes = []
    for number, question in enumerate(questions):
        await sync_to_async(report)(f"{name}: asking", number, len(questions))
        outcomes.append(await _ask(question, filters))
    return outcomes


async def _ask(question: Question, filters: SearchFilters) -> JudgedReply:
    reply = await measure_reply(question.text, filters)
    searched, completed = reply.searched, reply.end
    if isinstance(completed, FailedEvent):
        raise UntrustworthyMeasurement(f"{question.text!r} was not answered: {completed.message}")
    if completed is None:
        raise UntrustworthyMeasurement(f"The answer to {question.text!r} broke off.")
    if searched is not None and searched.trace.degraded:
        missing = ", ".join(searched.trace.degraded)
        raise UntrustworthyMeasurement(
            f"{question.text!r} was not answered with all parts of the search: {missing} failed."
        )
    if completed.generator not in ("", await sync_to_async(writers.get_default_writer_name)()):
        raise UntrustworthyMeasurement(f"{question.text!r} was answered by {completed.generator}: {completed.notice}")
    sources = searched.sources if searched is not None else ()
    cited = completed.citations
    return JudgedReply(
        question=question,
        refused=completed.refused,
        generator=completed.generator,
        quotes=tuple(contains_answer(citation.quote, question.answers) for citation in cited),
        in_sources=any(contains_answer(source.block.content, question.answers) for source in sources),
        first_ms=reply.first_ms,
        last_ms=reply.last_ms,
    )


def _compute_mean(values: Sequence[float]) -> Interval | None:
    return mean_interval(values) if values else None


def _compute_share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)
