"""How well questions are put into classes, on labelled questions.

Labelled questions are JSON lines: `{"question", "class", "language", "split"}`. The rules may be written by looking at
the split "tuning" only; a figure counts when it comes from "held-out".
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.beir import naming, read_objects
from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, text_table
from evaluation.exceptions import UnreadableTestSet
from evaluation.statistics import Interval, mean_interval, rounded
from retrieval.search.classification import classify
from retrieval.types import Classification, QueryClass

SHIPPED = Path(__file__).parents[2] / "query_classes.jsonl"
LANGUAGES = ("english", "dutch")
SPLITS = ("tuning", "held-out")


@dataclass(frozen=True, slots=True)
class ClassifiedQuestion:
    """A question with the class that its label says, and what the classifier made of it."""

    text: str
    query_class: QueryClass
    language: str
    split: str
    given: Classification

    @property
    def is_right(self) -> bool:
        return self.given.query_class is self.query_class


class Command(MeasuringCommand):
    help = (
        "Classify labelled questions and print the accuracy with 95 % bootstrap intervals, as a whole, for each half "
        "and each language, and the confusion matrix of the half that no rule was written on."
    )
    # Neither the database nor any backend takes part.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", nargs="?", type=Path, default=SHIPPED, metavar="FILE", help="Labelled questions (the site's own)."
        )
        parser.add_argument("--errors", action="store_true", help="List what was misjudged, with the rule that did it.")
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> dict[str, list[ClassifiedQuestion]]:
        by_group = _groups(_read(options["file"]))
        for one in by_group["all"] if options["errors"] else ():
            if not one.is_right:
                given = f"{one.given.query_class} ({one.given.rule})"
                self.stderr.write(f"{one.query_class}, taken for {given}: {one.text}")
        return by_group

    def as_json(self, by_group: Mapping[str, Sequence[ClassifiedQuestion]]) -> dict[str, Any]:
        return {
            name: {"questions": len(own), "accuracy": rounded(_accuracy(own)), "confusion": _confusion(own)}
            for name, own in by_group.items()
        }

    def as_text(self, by_group: Mapping[str, Sequence[ClassifiedQuestion]]) -> str:
        groups = [[name, str(len(own)), str(_accuracy(own))] for name, own in by_group.items()]
        judged = "held-out" if "held-out" in by_group else "all"
        matrix = _confusion(by_group[judged])
        rows = [
            [label, *map(str, given.values()), f"{given[label] / total:.3f}" if (total := sum(given.values())) else "-"]
            for label, given in matrix.items()
        ]
        return (
            f"{text_table(['questions', 'number', 'accuracy'], groups)}"
            f"Confusion matrix, {judged}: a row is the label, a column the class given\n"
            f"{text_table(['', *matrix, 'recall'], rows)}"
        )


def _accuracy(questions: Sequence[ClassifiedQuestion]) -> Interval:
    return mean_interval([float(one.is_right) for one in questions])


def _read(path: Path) -> list[ClassifiedQuestion]:
    """The file's questions in their order, classified. Raises: UnreadableTestSet, naming the line."""
    questions: dict[tuple[str, str], ClassifiedQuestion] = {}
    for where, row in read_objects(path):
        with naming(where):
            text, language, split = row["question"], row["language"], row["split"]
            made = ClassifiedQuestion(text, QueryClass(row["class"]), language, split, classify(text))
            if language not in LANGUAGES or split not in SPLITS:
                raise ValueError(f"{language!r} and {split!r} are not a language and a split")
        if questions.setdefault((language, text.casefold()), made) is not made:
            # The same question in both halves would be tuned on and tested with.
            raise UnreadableTestSet(f"{where}: the question {text!r} is there a second time.")
    if not questions:
        raise UnreadableTestSet(f"{path} holds no question.")
    return list(questions.values())


def _groups(questions: list[ClassifiedQuestion]) -> dict[str, list[ClassifiedQuestion]]:
    """The questions as a whole, of each split, and of each language within a split, without the empty groups."""
    found = {"all": questions}
    for split in SPLITS:
        found[split] = [one for one in questions if one.split == split]
        for language in LANGUAGES:
            found[f"{split}, {language}"] = [one for one in found[split] if one.language == language]
    return {name: members for name, members in found.items() if members}


def _confusion(questions: Sequence[ClassifiedQuestion]) -> dict[str, dict[str, int]]:
    """How many questions of each label were given each class."""
    counts = Counter((one.query_class, one.given.query_class) for one in questions)
    return {label.value: {given.value: counts[label, given] for given in QueryClass} for label in QueryClass}
