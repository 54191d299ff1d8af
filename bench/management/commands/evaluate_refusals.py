"""How many questions without an answer are refused at a given share of wrong refusals."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from bench.answers import refusals
from bench.answers.refusals import RefusalCase
from bench.answers.sets import Question, QuestionKind, off_topic, read_beir_questions, spread
from bench.arguments import positive
from bench.beir import read_test_set
from bench.corpora import configuration_of, load
from bench.reporting import figure, table
from chat.answering.evidence import gather_evidence
from chat.types import ContextSource
from evaluation.exceptions import EvaluationError
from evaluation.runs.agreement import holds_answer
from retrieval.exceptions import RetrievalError
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand
from retrieval.models import Collection
from retrieval.search.assembly import assemble
from retrieval.search.passage_rows import load_neighbours
from retrieval.search.pipeline import search
from retrieval.search.profiles import built_in_profile
from retrieval.search.trace import SearchTrace
from retrieval.types import SearchFilters


class Command(PreparedCommand):
    help = (
        "Ask questions with and without an answer, and print how well the confidence tells them apart: as it is, by "
        "each of its numbers, and by weights fitted on every other article of all sets."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="In BEIR's form, with answers.")
        parser.add_argument("--off-topic", type=Path, action="append", default=[], metavar="DIR", help="Foreign sets.")
        parser.add_argument("--limit", type=positive, metavar="N", help="Of each kind of question, spread evenly.")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        cases_of: dict[str, list[RefusalCase]] = {}
        try:
            foreign = off_topic([read_test_set(folder) for folder in options["off_topic"]], options["limit"])
            for folder in options["folders"]:
                test_set, questions = read_beir_questions(folder)
                collection = load(test_set, configuration=configuration_of(test_set), chunked=False, report=bar.show)
                by_kind = ([question for question in questions if question.kind is kind] for kind in QuestionKind)
                asked = [question for own in by_kind for question in spread(own, options["limit"])] + list(foreign)
                cases_of[test_set.name] = []
                for number, question in enumerate(asked):
                    bar.show(f"{test_set.name}: asking", number, len(asked))
                    cases_of[test_set.name] += _cases(question, collection)
        except (EvaluationError, RetrievalError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.clear()
        self.stdout.write(_report(cases_of))


def _cases(question: Question, collection: Collection) -> Iterator[RefusalCase]:
    """The question with all sources, and an answerable one without those that answer it.

    A question whose answer was not found by the search is not one that the estimate could judge.
    """
    trace, sources = _search(question.text, collection)
    group = sources[0].block.best.source.partition("#")[0] if sources else ""
    kind = question.kind.value.replace("_", "-")
    if kind != refusals.ANSWERABLE:
        yield from _case(kind, "" if kind == refusals.OFF_TOPIC else group, trace, sources)
        return
    others = tuple(source for source in sources if not holds_answer(source.block.content, question.answers))
    if len(others) == len(sources):
        return
    yield from _case(refusals.ANSWERABLE, group, trace, sources)
    if others:
        yield from _case(refusals.WITHHELD, group, trace, others)


def _case(kind: str, group: str, trace: SearchTrace, sources: tuple[ContextSource, ...]) -> Iterator[RefusalCase]:
    evidence = gather_evidence(trace, sources)
    if sources and not evidence.by_words:
        yield RefusalCase(kind, group, evidence.features)


def _search(question: str, collection: Collection) -> tuple[SearchTrace, tuple[ContextSource, ...]]:
    profile = built_in_profile()
    result = search(question, SearchFilters(collections=(collection.pk,)))
    context = assemble(
        result.hits,
        load_neighbours,
        budget_tokens=profile.context_budget_tokens,
        expand=profile.context_neighbours,
        blocks=profile.context_blocks,
    )
    return result.trace, tuple(ContextSource(marker, block) for marker, block in enumerate(context.blocks, start=1))


def _report(cases_of: dict[str, list[RefusalCase]]) -> str:
    halves = {name: refusals.split_by_group(cases) for name, cases in cases_of.items()}
    intercept, weights = refusals.fit_weights([case for half, _ in halves.values() for case in half])
    rows = []
    for name, (_, judged) in halves.items():
        scores_of = {
            **{each: [case.features[each] for case in judged] for each in weights},
            "confidence": [refusals.logit(case) for case in judged],
            "fitted": [intercept + sum(weights[each] * case.features[each] for each in weights) for case in judged],
        }
        for label, scores in scores_of.items():
            for curve in refusals.curves(judged, scores):
                rows.append([name, curve.kind, curve.questions, label, figure(curve.area), *map(figure, curve.refused)])
    shares = [f"refused at {share:.0%}" for share in refusals.WRONG_REFUSALS]
    fitted = ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items())
    return "\n".join(
        [
            table(["set", "questions", "number", "by", "area", *shares], rows),
            "",
            f"Fitted: intercept {intercept:.2f}, {fitted}.",
        ]
    )
