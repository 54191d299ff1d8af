"""Measure how often the site assigns questions to the right class, on labelled questions.

A labelled question is a JSON line `{"question", "class", "language", "split"}`. The rules were written with the split
"tuning", so only the figures of the other split show their accuracy.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.beir import name_line_in_errors, read_json_objects
from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, format_markdown_table
from evaluation.exceptions import UnreadableTestSet
from evaluation.statistics import Interval, mean_interval, round_figures
from retrieval.search.understanding.classification import classify_question
from retrieval.types import QueryClass, QueryClassification

SHIPPED = Path(__file__).parents[2] / "query_classes.jsonl"


@dataclass(frozen=True, slots=True)
class ClassifiedQuestion:
    text: str
    query_class: QueryClass
    language: str
    split: str
    given: QueryClassification

    @property
    def is_right(self) -> bool:
        return self.given.query_class is self.query_class


class Command(MeasuringCommand):
    help = (
        "Classify labelled questions and print the accuracy with 95 % bootstrap intervals, in all, by half and by "
        "language, and the confusion matrix of the half on which no rule was written."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", nargs="?", type=Path, default=SHIPPED, metavar="FILE", help="Labelled questions (the site's own)."
        )
        parser.add_argument("--errors", action="store_true", help="List the wrong classes with their rules.")
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> dict[str, list[ClassifiedQuestion]]:
        by_group = _group_questions_by_split(_read_questions(options["file"]))
        for one in by_group["all"] if options["errors"] else ():
            if not one.is_right:
                given = f"{one.given.query_class} ({one.given.rule})"
                self.stderr.write(f"{one.query_class}, taken for {given}: {one.text}")
        return by_group

    def as_json(self, by_group: Mapping[str, Sequence[ClassifiedQuestion]]) -> dict[str, Any]:
        return {
            name: {
                "questions": len(own),
                "accuracy": round_figures(_compute_accuracy(own)),
                "confusion": _count_confusion(own),
            }
            for name, own in by_group.items()
        }

    def as_markdown(self, by_group: Mapping[str, Sequence[ClassifiedQuestion]]) -> str:
        groups = [[name, str(len(own)), str(_compute_accuracy(own))] for name, own in by_group.items()]
        judged = "held-out" if "held-out" in by_group else "all"
        matrix = _count_confusion(by_group[judged])
        rows = [
            [label, *map(str, given.values()), f"{given[label] / total:.3f}" if (total := sum(given.values())) else "-"]
            for label, given in matrix.items()
        ]
        return (
            f"{format_markdown_table(['questions', 'number', 'accuracy'], groups)}\n\n"
            f"Confusion matrix, {judged}: a row is a label, a column a class given\n\n"
            f"{format_markdown_table(['', *matrix, 'recall'], rows)}"
        )


def _compute_accuracy(questions: Sequence[ClassifiedQuestion]) -> Interval:
    return mean_interval([float(one.is_right) for one in questions])


def _read_questions(path: Path) -> list[ClassifiedQuestion]:
    questions = []
    for where, row in read_json_objects(path):
        with name_line_in_errors(where):
            text, label = row["question"], QueryClass(row["class"])
            questions.append(ClassifiedQuestion(text, label, row["language"], row["split"], classify_question(text)))
    if not questions:
        raise UnreadableTestSet(f"{path} has no question.")
    return questions


def _group_questions_by_split(questions: list[ClassifiedQuestion]) -> dict[str, list[ClassifiedQuestion]]:
    groups: dict[str, list[ClassifiedQuestion]] = {"all": questions}
    for one in questions:
        for name in (one.split, f"{one.split}, {one.language}"):
            groups.setdefault(name, []).append(one)
    return groups


def _count_confusion(questions: Sequence[ClassifiedQuestion]) -> dict[str, dict[str, int]]:
    counts = Counter((one.query_class, one.given.query_class) for one in questions)
    return {label.value: {given.value: counts[label, given] for given in QueryClass} for label in QueryClass}
