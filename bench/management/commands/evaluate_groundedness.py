"""How well the support of sentences tells good answers from bad ones, on answers with human labels."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from bench.arguments import positive
from bench.groundedness.altered import altered_statements, areas
from bench.groundedness.labelled import (
    JudgedAnswer,
    Marking,
    cross_validated,
    fitted_weights,
    judge_answers,
    marking,
    read_labelled_answers,
    word_share,
)
from bench.statistics import auroc, auroc_interval
from chat.answering.support import SupportReason
from evaluation.exceptions import EvaluationError
from retrieval.infrastructure.progress import ProgressBar

if TYPE_CHECKING:
    from bench.groundedness.altered import Alteration
    from chat.answering.support import SupportWeights

    Told = dict[str, dict[Alteration, tuple[float, int]]]

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
        parser.add_argument(
            "--cross-validate",
            action="store_true",
            help="Fit the weights to these labels too, and judge each answer by weights fitted on other questions.",
        )
        parser.add_argument(
            "--altered",
            action="append",
            default=[],
            type=Path,
            metavar="DIR",
            help="Also: how well sentences of this test set are told from the same with a number, a name or a negation "
            'changed. In BEIR\'s form, its queries with "answers"; can be given again.',
        )
        parser.add_argument("--limit", type=positive, default=100, metavar="N", help="Sentences taken of each DIR.")
        parser.add_argument("--examples", type=positive, metavar="N", help="Show N sentences that were misjudged.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        progress = ProgressBar(self.stderr)
        try:
            answers = read_labelled_answers(options["file"])
            altered = {folder: altered_statements(folder, options["limit"]) for folder in options["altered"]}
            judged = judge_answers(answers, progress.show)
            refitted = (fitted_weights(judged), cross_validated(judged)) if options["cross_validate"] else None
            told = {folder.name: areas(made, progress.show) for folder, made in altered.items()}
        except (EvaluationError, ValueError) as error:
            raise CommandError(str(error)) from error
        finally:
            progress.clear()
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(judged, refitted, told), ensure_ascii=False))
            return
        self._print(judged, refitted)
        self._print_altered(told)
        if options["examples"]:
            self._print_examples(judged, options["examples"])

    def _print(
        self, judged: Sequence[JudgedAnswer], refitted: tuple[SupportWeights, list[JudgedAnswer]] | None
    ) -> None:
        labels = _labels(judged)
        area = auroc_interval(labels, _scores(judged))
        self.stdout.write(f"{len(judged)} answers, {sum(labels)} of them hallucinated\n\n")
        self.stdout.write(f"AUROC of groundedness       {area}")
        self.stdout.write(f"AUROC of the share of words {_baseline(judged):.3f}")
        if refitted is not None:
            weights, rejudged = refitted
            self.stdout.write(f"AUROC, cross-validated      {auroc(labels, _scores(rejudged)):.3f}")
            self.stdout.write(f"Weights fitted to these labels: {weights}")
        self.stdout.write(f"\nMarked sentences: {_marking_in_words(marking(judged))}\n")
        self._print_features(judged)

    def _print_features(self, judged: Sequence[JudgedAnswer]) -> None:
        """For each reason, how many sentences have it and how many of those people marked as well."""
        sentences = [sentence for answer in judged for sentence in answer.sentences]
        self.stdout.write("reason      sentences  marked by people")
        for reason in (SupportReason.WORDS, SupportReason.NUMBER, SupportReason.NAME, SupportReason.NEGATION):
            having = [sentence for sentence in sentences if reason in sentence.judgement.reasons]
            share = f"{sum(each.marked for each in having) / len(having):.0%}" if having else "-"
            self.stdout.write(f"{reason:<10}  {len(having):>9}  {share:>16}")

    def _print_altered(self, told: Told) -> None:
        for name, found in told.items():
            self.stdout.write(f"\n{name}: AUROC of support, by what was altered")
            for alteration, (area, number) in found.items():
                self.stdout.write(f"{alteration:<10}  {number:>9}  {area:>16.3f}")

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


def _marking_in_words(found: Marking) -> str:
    precision = "-" if found.precision is None else f"{found.precision:.2f}"
    recall = "-" if found.recall is None else f"{found.recall:.2f}"
    return (
        f"{found.marked} of {found.sentences}, precision {precision}, recall {recall} of the {found.bad} that people "
        "marked."
    )


def _as_json(
    judged: Sequence[JudgedAnswer], refitted: tuple[SupportWeights, list[JudgedAnswer]] | None, told: Told
) -> dict[str, Any]:
    area = auroc_interval(_labels(judged), _scores(judged))
    found = marking(judged)
    document: dict[str, Any] = {
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
    if refitted is not None:
        document["cross_validated_auroc"] = round(auroc(_labels(judged), _scores(refitted[1])), DIGITS)
    if told:
        document["altered"] = {
            name: {
                alteration.value: {"auroc": round(area, DIGITS), "statements": number}
                for alteration, (area, number) in found.items()
            }
            for name, found in told.items()
        }
    return document
