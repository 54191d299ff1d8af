from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.labelled_answers import (
    JudgedAnswer,
    compute_supported_word_share,
    count_unsupported_sentences,
    judge_answers,
    read_labelled_answers,
)
from bench.management.measuring import MeasuringCommand
from bench.reporting import Report
from bench.statistics import auroc, auroc_interval

DIGITS = 4


class Command(MeasuringCommand):
    help = (
        "Judge answers that people have labelled, and print the area under the ROC curve (AUROC) of their groundedness "
        "with a 95 % bootstrap interval, beside that of the share of answer words found in the passages."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            type=Path,
            metavar="FILE",
            help='JSON lines: {"passages", "answer", "hallucinated"}, and "spans" of what is marked, as RAGTruth has.',
        )
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> list[JudgedAnswer]:
        return judge_answers(read_labelled_answers(options["file"]), report)

    def as_markdown(self, judged: Sequence[JudgedAnswer]) -> str:
        figures, found = self.as_json(judged), count_unsupported_sentences(judged)
        hallucinated = sum(each.answer.hallucinated for each in judged)
        shares = ["-" if share is None else f"{share:.2f}" for share in (found.precision, found.recall)]
        return (
            f"{len(judged)} answers, {hallucinated} of them hallucinated\n\n"
            f"AUROC of groundedness       {figures['auroc']:.3f} [{figures['low']:.3f} {figures['high']:.3f}]\n"
            f"AUROC of the share of words {figures['baseline_auroc']:.3f}\n\n"
            f"Marked sentences: {found.marked} of {found.sentences}, precision {shares[0]}, recall {shares[1]} of "
            f"the {found.bad} that people marked.\n"
        )

    def as_json(self, judged: Sequence[JudgedAnswer]) -> dict[str, Any]:
        labels = [each.answer.hallucinated for each in judged]
        # A low support means a likely hallucination, so the sign is reversed.
        area = auroc_interval(labels, [-each.score for each in judged])
        found = count_unsupported_sentences(judged)
        return {
            "answers": len(judged),
            "auroc": round(area.mean, DIGITS),
            "low": round(area.low, DIGITS),
            "high": round(area.high, DIGITS),
            "baseline_auroc": round(
                auroc(labels, [-compute_supported_word_share(each.answer) for each in judged]), DIGITS
            ),
            "sentences": {
                "judged": found.sentences,
                "marked": found.marked,
                "precision": None if found.precision is None else round(found.precision, DIGITS),
                "recall": None if found.recall is None else round(found.recall, DIGITS),
            },
        }
