from __future__ import annotations

from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from bench.management.measuring import MeasuringCommand
from bench.reporting import Report
from bench.tables.questions import (
    TableQuestion,
    TableQuestionCounts,
    has_expected_values,
    is_right,
    read_questions,
    split_into_halves,
)
from retrieval.documents import ingestion, submission
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.models import Collection, Visibility
from retrieval.search.pipeline import search
from retrieval.search.shown_tables import bind_nearness_to_table, show_table
from retrieval.tables.answering import answer_from_tables
from retrieval.tables.results import ShownTable, TableResult
from retrieval.tables.stored_tables import find_candidate_tables
from retrieval.types import SearchFilters


class Command(MeasuringCommand, MigratedDatabaseCommand):
    help = (
        "Ingest each table of a set in the form of WikiTableQuestions into a collection of its own, ask its questions "
        "there, and print how many get a computed value, how many of these are right, and for how many the right value "
        "is stated or in the rows that are shown, for both halves of the tables."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR", help="With questions.jsonl and tables/NAME.csv.")
        parser.add_argument("--wrong", choices=["shaping", "judging"], help="Print the wrong values of this half.")
        parser.add_argument(
            "--missing", choices=["shaping", "judging"], help="Print the questions of this half without their value."
        )
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> dict[str, TableQuestionCounts]:
        try:
            questions = read_questions(options["folder"])
        except (OSError, ValueError, KeyError) as error:
            raise CommandError(f"{options['folder']} holds no questions about tables: {error}") from error
        half_of = split_into_halves(questions)
        tallies: dict[str, TableQuestionCounts] = defaultdict(TableQuestionCounts)
        for question, result, shown in _ask(questions):
            half = half_of[question.table]
            is_in_rows = has_expected_values(shown, question.answers)
            if result is None or not result.is_computed:
                tallies[half].add(stated=False, right=False, on_page=is_in_rows)
                if not is_in_rows and options["missing"] == half:
                    self.stderr.write(f"{question.table.name} {question.question} | {list(question.answers)}")
                continue
            right = is_right(result.answers, question.answers)
            for name in (half, f"{half}: {result.operation}"):
                tallies[name].add(stated=True, right=right, on_page=right or is_in_rows)
            if not right and options["wrong"] == half:
                self.stderr.write(
                    f"{question.table.name} {question.question} | {result.operation} {list(result.conditions)} | "
                    f"{list(result.answers)} | {list(question.answers)}"
                )
        return dict(sorted(tallies.items()))

    def as_json(self, tallies: dict[str, TableQuestionCounts]) -> dict[str, Any]:
        return {name: asdict(tally) for name, tally in tallies.items()}

    def as_markdown(self, tallies: dict[str, TableQuestionCounts]) -> str:
        return "\n".join(
            f"{name}: {tally.questions} questions, {tally.stated} stated, {tally.right} right "
            f"({f'{100 * tally.right / tally.stated:.1f} %' if tally.stated else 'none'}), {tally.on_page} on the page "
            f"({100 * tally.on_page / tally.questions:.1f} %)"
            for name, tally in tallies.items()
        )


def _ask(questions: list[TableQuestion]) -> Iterator[tuple[TableQuestion, TableResult | None, ShownTable | None]]:
    for table, asked in groupby(sorted(questions, key=lambda question: question.table), lambda one: one.table):
        collection, _ = Collection.objects.get_or_create(
            slug=f"table-questions-{table.stem}",
            defaults={"name": f"Table questions {table.stem}", "visibility": Visibility.STAFF},
        )
        submitted = submission.submit(collection, table.name, table.read_bytes(), enqueue=False)
        if submitted.changed:
            ingestion.ingest_document(submitted.document.pk)
        filters = SearchFilters(collections=(collection.pk,))
        for question in asked:
            found = search(question.question, filters)
            passages = [hit.passage for hit in found.hits]
            searched = found.trace.query
            candidates = find_candidate_tables(searched, filters, passages)
            computed = answer_from_tables(searched, candidates, bind_nearness_to_table)
            yield question, computed, show_table(searched, candidates, passages)
