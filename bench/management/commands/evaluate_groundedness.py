"""How well the support of sentences tells good answers from bad ones, on answers with human labels."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.arguments import positive
from bench.labelled_answers import JudgedAnswer, judge_answers, marking, read_labelled_answers, word_share
from bench.statistics import auroc, auroc_interval
from chat.answering.support import SupportReason
from evaluation.exceptions import EvaluationError
from retrieval.infrastructure.progress import ProgressBar

DIGITS = 4
LONGEST_EXAMPLE = 160


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
        parser.add_argument("--examples", type=positive, metavar="N", help="Show N sentences that were misjudged.")
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
        if options["examples"]:
            self._print_examples(judged, options["examples"])

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
        self._print_features(judged)

    def _print_features(self, judged: Sequence[JudgedAnswer]) -> None:
        """For each reason, how many sentences have it and how many of those people marked as well."""
        sentences = [sentence for answer in judged for sentence in answer.sentences]
        self.stdout.write("reason      sentences  marked by people")
        for reason in (SupportReason.WORDS, SupportReason.NUMBER, SupportReason.NAME, SupportReason.NEGATION):
            having = [sentence for sentence in sentences if reason in sentence.judgement.reasons]
            share = f"{sum(each.marked for each in having) / len(having):.0%}" if having else "-"
            self.stdout.write(f"{reason:<10}  {len(having):>9}  {share:>16}")

    def _print_examples(self, judged: Sequence[JudgedAnswer], number: int) -> None:
        """The sentences whose label surprises most, with the passage that comes closest."""
        sentences = [(answer, sentence) for answer in judged for sentence in answer.sentences]
        surprising = sorted(
            sentences, key=lambda row: row[1].judgement.support if not row[1].marked else 1.0 - row[1].judgement.support
        )
        for answer, sentence in surprising[:number]:
            judgement = sentence.judgement
            label = "marked by people" if sentence.marked else "not marked by people"
            self.stdout.write(f"\nAnswer {answer.answer.id}, support {judgement.support:.2f}, {label}")
            self.stdout.write(f"  sentence: {sentence.text[:LONGEST_EXAMPLE]}")
            if judgement.match is not None:
                closest = judgement.match.sentence.text[:LONGEST_EXAMPLE]
                self.stdout.write(f"  passage {judgement.match.passage.marker}: {closest}")


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
