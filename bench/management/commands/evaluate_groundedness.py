"""How well the support of sentences tells good answers from bad ones, on answers with human labels."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.labelled_answers import JudgedAnswer, judge_answers, marking, read_labelled_answers, word_share
from bench.statistics import auroc, auroc_interval
from evaluation.exceptions import EvaluationError
from retrieval.infrastructure.progress import ProgressBar

DIGITS = 4


class Command(BaseCommand):
    help = (
        "Judge answers that people have labelled, and print the area under the ROC curve (AUROC) of their groundedness "
        "with a 95 % bootstrap interval, beside that of the share of answer words found in the passages."
    )
    # The database takes no part.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            type=Path,
            metavar="FILE",
            help='JSON lines: {"passages", "answer", "hallucinated"}, and "spans" of what is marked, as RAGTruth has.',
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        progress = ProgressBar(self.stderr)
        try:
            judged = judge_answers(read_labelled_answers(options["file"]), progress.show)
        except EvaluationError as error:
            raise CommandError(str(error)) from error
        finally:
            progress.clear()
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(judged), ensure_ascii=False))
            return
        self._print(judged)

    def _print(self, judged: Sequence[JudgedAnswer]) -> None:
        labels = _labels(judged)
        area = auroc_interval(labels, _scores(judged))
        self.stdout.write(f"{len(judged)} answers, {sum(labels)} of them hallucinated\n\n")
        self.stdout.write(f"AUROC of groundedness       {area}")
        self.stdout.write(f"AUROC of the share of words {_baseline(judged):.3f}")
        found = marking(judged)
        shares = ["-" if share is None else f"{share:.2f}" for share in (found.precision, found.recall)]
        self.stdout.write(
            f"\nMarked sentences: {found.marked} of {found.sentences}, precision {shares[0]}, recall {shares[1]} of "
            f"the {found.bad} that people marked.\n"
        )


def _labels(judged: Sequence[JudgedAnswer]) -> list[bool]:
    return [each.answer.hallucinated for each in judged]


def _scores(judged: Sequence[JudgedAnswer]) -> list[float]:
    """Higher for what is more likely hallucinated."""
    return [-each.score for each in judged]


def _baseline(judged: Sequence[JudgedAnswer]) -> float:
    return auroc(_labels(judged), [-word_share(each.answer) for each in judged])


def _as_json(judged: Sequence[JudgedAnswer]) -> dict[str, Any]:
    area = auroc_interval(_labels(judged), _scores(judged))
    found = marking(judged)
    return {
        "answers": len(judged),
        "auroc": round(area.mean, DIGITS),
        "low": round(area.low, DIGITS),
        "high": round(area.high, DIGITS),
        "baseline_auroc": round(_baseline(judged), DIGITS),
        "sentences": {
            "judged": found.sentences,
            "marked": found.marked,
            "precision": None if found.precision is None else round(found.precision, DIGITS),
            "recall": None if found.recall is None else round(found.recall, DIGITS),
        },
    }
