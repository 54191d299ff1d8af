"""Of the questions about tables, how many get a computed value, and how many of these values are right."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from bench.tables.questions import TableQuestion, Tally, halves, is_right, read_questions
from retrieval.documents import ingestion, submission
from retrieval.management.prepared import PreparedCommand
from retrieval.models import Collection, Visibility
from retrieval.search.pipeline import search
from retrieval.tables.answering import answer_from_tables
from retrieval.tables.results import TableResult
from retrieval.types import SearchFilters


class Command(PreparedCommand):
    help = (
        "Ingest each table of a set in the form of WikiTableQuestions into a collection of its own, ask its questions "
        "there, and print how many get a computed value and how many of these are right, for both halves of the tables."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR", help="With questions.jsonl and tables/NAME.csv.")
        parser.add_argument("--wrong", choices=["shaping", "judging"], help="Print the wrong values of this half.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            questions = read_questions(options["folder"])
        except (OSError, ValueError, KeyError) as error:
            raise CommandError(f"{options['folder']} holds no questions about tables: {error}") from error
        half_of = halves(questions)
        tallies: dict[str, Tally] = defaultdict(Tally)
        for question, result in _ask(questions):
            stated = result is not None and result.is_computed
            right = result is not None and stated and is_right(result.answers, question.answers)
            half = half_of[question.table]
            for name in (half, f"{half}: {result.operation}" if result is not None and stated else ""):
                if name:
                    tallies[name].add(stated=stated, right=right)
            if result is not None and stated and not right and options["wrong"] == half:
                self.stderr.write(
                    f"{question.table.name} {question.question} | {result.operation} {list(result.conditions)} | "
                    f"{list(result.answers)} | {list(question.answers)}"
                )
        if options["json"]:
            figures = {
                name: {"questions": tally.questions, "stated": tally.stated, "right": tally.right}
                for name, tally in sorted(tallies.items())
            }
            self.stdout.write(json.dumps(figures))
            return
        for name, tally in sorted(tallies.items()):
            share = f"{100 * tally.right / tally.stated:.1f} %" if tally.stated else "none"
            self.stdout.write(
                f"{name}: {tally.questions} questions, {tally.stated} stated, {tally.right} right ({share})"
            )


def _ask(questions: list[TableQuestion]) -> Iterator[tuple[TableQuestion, TableResult | None]]:
    for table, asked in groupby(sorted(questions, key=lambda question: question.table), lambda one: one.table):
        collection, _ = Collection.objects.get_or_create(
            slug=f"table-questions-{table.stem}",
            defaults={"name": f"Table questions {table.stem}", "visibility": Visibility.STAFF},
        )
        submitted = submission.submit(collection, table.name, table.read_bytes(), enqueue=False)
        if submitted.changed:
            ingestion.ingest(submitted.document.pk)
        filters = SearchFilters(collections=(collection.pk,))
        for question in asked:
            found = search(question.question, filters)
            passages = [hit.passage for hit in found.hits]
            yield question, answer_from_tables(found.trace.query, filters, passages)
