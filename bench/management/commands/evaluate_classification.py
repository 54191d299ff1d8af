"""How well questions are put into classes, on labelled questions."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.classification.measures import (
    HELD_OUT,
    SHIPPED,
    ClassifiedQuestion,
    ConfusionMatrix,
    accuracy,
    classify_all,
    confusion_matrix,
    groups,
    read_labelled_questions,
)
from bench.reporting import text_table
from evaluation.exceptions import EvaluationError
from evaluation.statistics import rounded
from retrieval.search.classification import classify
from retrieval.types import QueryClass


class Command(BaseCommand):
    help = (
        "Classify labelled questions and print the accuracy with 95 % bootstrap intervals, as a whole, for each half "
        "and each language, and the confusion matrix of the half that no rule was written on."
    )
    # Neither the database nor any backend takes part.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            nargs="?",
            type=Path,
            default=SHIPPED,
            metavar="FILE",
            help='JSON lines: {"question", "class", "language", "split"}; the questions that came with the site when '
            "left out.",
        )
        parser.add_argument("--errors", action="store_true", help="List what was misjudged, with the rule that did it.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            classified = classify_all(read_labelled_questions(options["file"]), classify)
        except EvaluationError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(classified), ensure_ascii=False))
            return
        by_group = groups(classified)
        rows = []
        for name, members in by_group.items():
            rows.append([name, str(len(members)), str(accuracy(members))])
        self.stdout.write(text_table(["questions", "number", "accuracy"], rows))
        judged = HELD_OUT if HELD_OUT in by_group else "all"
        self.stdout.write(f"Confusion matrix, {judged}: a row is the label, a column the class given")
        self._print_matrix(confusion_matrix(by_group[judged]))
        if options["errors"]:
            self._print_errors(classified)

    def _print_matrix(self, matrix: ConfusionMatrix) -> None:
        rows = [[actual.value, *map(str, matrix.row(actual)), _figure(matrix.recall(actual))] for actual in QueryClass]
        rows.append(["precision", *(_figure(matrix.precision(predicted)) for predicted in QueryClass), ""])
        self.stdout.write(text_table(["", *(predicted.value for predicted in QueryClass), "recall"], rows))

    def _print_errors(self, classified: Sequence[ClassifiedQuestion]) -> None:
        for one in classified:
            if not one.correct:
                given = f"{one.classification.query_class} ({one.classification.rule})"
                self.stdout.write(f"{one.question.query_class}, taken for {given}: {one.question.text}")


def _figure(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"


def _as_json(classified: Sequence[ClassifiedQuestion]) -> dict[str, Any]:
    return {
        name: {
            "questions": len(members),
            "accuracy": rounded(accuracy(members)),
            "confusion": _matrix_as_json(confusion_matrix(members)),
        }
        for name, members in groups(classified).items()
    }


def _matrix_as_json(matrix: ConfusionMatrix) -> dict[str, dict[str, int]]:
    """The counts by label, then by the class given."""
    return {
        actual.value: dict(zip((predicted.value for predicted in QueryClass), matrix.row(actual), strict=True))
        for actual in QueryClass
    }
