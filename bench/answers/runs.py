"""Measuring whole answers: questions go through the `answer()` that people get, and what comes back is judged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.core.management.base import OutputWrapper
from django.utils.text import slugify

from bench.answers.sets import CollectionFolder, Question, QuestionFile, QuestionKind
from bench.corpora import CONFIGURATION_BY_CODE, LONGEST_SLUG
from bench.reporting import Report
from bench.statistics import refusal_precision
from chat import conf
from chat.types import Failed
from evaluation.exceptions import EvaluationError, UntrustworthyRun
from evaluation.runs.agreement import holds_answer
from evaluation.runs.measurement import reply_to
from evaluation.runs.queue import corpus_version
from evaluation.statistics import Interval, Percentiles, mean_interval, percentiles
from retrieval.documents.file_loading import ingest_paths
from retrieval.models import Collection, Visibility
from retrieval.models.collection import TextSearchConfiguration
from retrieval.types import SearchFilters


@dataclass(frozen=True, slots=True)
class JudgedReply:
    """What came of one question.

    ``quotes`` say of each citation whether the quoted words hold a right answer. ``first_ms`` is None when there was no
    token.
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
    """All outcomes on one set. A figure is None where there is nothing to take it of."""

    name: str
    outcomes: tuple[JudgedReply, ...]

    @property
    def generators(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(outcome.generator for outcome in self.outcomes if outcome.generator))

    def of(self, kind: QuestionKind) -> list[JudgedReply]:
        return [outcome for outcome in self.outcomes if outcome.question.kind is kind]

    def figures(self) -> dict[str, Interval | None]:
        """By name, in the order in which they are shown.

        Citation precision is a mean over the citations of each answer, then over the answers given to answerable
        questions; recall is over all answerable questions, and one that is refused, or answered without citing the
        right words, counts 0.
        """
        answerable = self.of(QuestionKind.ANSWERABLE)
        answered = [outcome for outcome in answerable if not outcome.refused]
        cited = [outcome for outcome in answered if outcome.quotes]
        figures: dict[str, Interval | None] = {
            "answered": _mean([not outcome.refused for outcome in answerable]),
            "answer_in_sources": _mean([outcome.in_sources for outcome in answerable]),
            "citation_precision": _mean([_share(outcome.quotes) for outcome in cited]),
            "citation_recall": _mean([any(outcome.quotes) for outcome in answerable]),
        }
        wrongly = [outcome.refused for outcome in answerable]
        for kind in (QuestionKind.OFF_TOPIC, QuestionKind.ADVERSARIAL):
            rightly = [outcome.refused for outcome in self.of(kind)]
            figures[f"refusal_recall_{kind}"] = _mean(rightly)
            figures[f"refusal_precision_{kind}"] = refusal_precision(rightly, wrongly) if rightly and wrongly else None
        return figures

    def latency(self) -> dict[str, Percentiles]:
        """Milliseconds to the first and to the last token of the answers given, and to a refusal."""
        samples = {
            "first_token": [outcome.first_ms for outcome in self.outcomes if outcome.first_ms is not None],
            "last_token": [outcome.last_ms for outcome in self.outcomes if not outcome.refused],
            "refusal": [outcome.last_ms for outcome in self.outcomes if outcome.refused],
        }
        return {name: percentiles(values) for name, values in samples.items() if values}


def load_folders(file: QuestionFile, output: OutputWrapper) -> list[Collection]:
    """The collections that hold the folders of a question file, read unless they have been.

    They are collections of this measurement's own and not public, so that documents that an admin changed or deleted
    neither change the figures nor come back. Raises: EvaluationError for a file that cannot be read.
    """
    return [_loaded(file.name, folder, output) for folder in file.collections]


def run(
    name: str,
    questions: Sequence[Question],
    collections: Sequence[Collection],
    *,
    report: Report,
) -> AnswerRun:
    """Each question asked once, one after another, and its answer judged; the first one also beforehand, unmeasured.

    Raises: UntrustworthyRun when an answer failed, a retriever of the search or the model did not answer, or a
    collection changed meanwhile.
    """
    versions = _versions(collections)
    filters = SearchFilters(collections=tuple(collection.pk for collection in collections))
    outcomes = asyncio.run(_ask_all(name, questions, filters, report))
    if _versions(collections) != versions:
        raise UntrustworthyRun(f"The documents of {name} changed while they were asked: run it again.")
    return AnswerRun(name, tuple(outcomes))


async def _ask_all(
    name: str, questions: Sequence[Question], filters: SearchFilters, report: Report
) -> list[JudgedReply]:
    await _ask(questions[0], filters)  # loads the model and opens connections
    outcomes = []
    for number, question in enumerate(questions):
        await sync_to_async(report)(f"{name}: asking", number, len(questions))
        outcomes.append(await _ask(question, filters))
    return outcomes


async def _ask(question: Question, filters: SearchFilters) -> JudgedReply:
    reply = await reply_to(question.text, filters)
    searched, completed = reply.searched, reply.end
    if isinstance(completed, Failed):
        raise UntrustworthyRun(f"{question.text!r} was not answered: {completed.message}")
    if completed is None:
        raise UntrustworthyRun(f"The answer to {question.text!r} broke off.")
    if searched is not None and searched.trace.degraded:
        missing = ", ".join(searched.trace.degraded)
        raise UntrustworthyRun(f"{question.text!r} was not answered with all parts of the search: {missing} failed.")
    if completed.generator not in ("", await sync_to_async(conf.writer_name)()):
        raise UntrustworthyRun(f"{question.text!r} was answered by {completed.generator}: {completed.notice}")
    # A question that is turned away unsearched has no sources.
    sources = searched.sources if searched is not None else ()
    cited = completed.citations
    return JudgedReply(
        question=question,
        refused=completed.refused,
        generator=completed.generator,
        quotes=tuple(holds_answer(citation.quote, question.answers) for citation in cited),
        in_sources=any(holds_answer(source.block.content, question.answers) for source in sources),
        first_ms=reply.first_ms,
        last_ms=reply.last_ms,
    )


def _loaded(name: str, folder: CollectionFolder, output: OutputWrapper) -> Collection:
    configuration = CONFIGURATION_BY_CODE.get(folder.language, TextSearchConfiguration.ENGLISH).value
    collection, _ = Collection.objects.get_or_create(
        slug=f"{_slug_prefix(name)}{folder.slug}"[:LONGEST_SLUG],
        defaults={
            "name": f"Questions of {name}: {folder.slug}"[:200],
            "description": "Loaded by `manage.py evaluate_answers`; can be deleted.",
            "text_search_configuration": configuration,
            "visibility": Visibility.STAFF,
        },
    )
    counts = ingest_paths([folder.folder], collection, output)
    if counts.failed:
        source, reason = counts.failures[0]
        raise EvaluationError(f"{counts.failed} documents of {folder.folder} could not be read; {source}: {reason}")
    return collection


def _slug_prefix(name: str) -> str:
    return f"{slugify(name)}-questions-"


def _versions(collections: Sequence[Collection]) -> list[int]:
    return [corpus_version(collection.pk) for collection in collections]


def _mean(values: Sequence[float]) -> Interval | None:
    return mean_interval(values) if values else None


def _share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)
