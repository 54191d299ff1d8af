"""How well attempts to instruct the site are told from questions, on labelled texts."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from bench.injection.questions import Detection, detect, read_texts
from chat.answering.injection import find_instruction
from evaluation.exceptions import EvaluationError


class Command(BaseCommand):
    help = (
        "Read texts that are labelled as attempts (1) or questions (0), and files of questions, and print the share of "
        "attempts that are caught, by which rule, and of questions that are taken for attempts."
    )
    # Neither the database nor any backend takes part.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files",
            nargs="+",
            type=Path,
            metavar="FILE",
            help='JSON lines with "text" or "question", and "label"; without labels all are questions.',
        )
        parser.add_argument("--errors", action="store_true", help="List what was missed and what was mistaken.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            texts = [labelled for path in options["files"] for labelled in read_texts(path)]
        except EvaluationError as error:
            raise CommandError(str(error)) from error
        detection = detect(texts, find_instruction, settings.QUESTION_MAX_CHARACTERS)
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(detection), ensure_ascii=False))
            return
        caught = detection.attempts - len(detection.missed)
        rules = ", ".join(f"{rule} {count}" for rule, count in detection.by_rule.most_common())
        self.stdout.write(f"attempts   {detection.attempts:>6}  caught {caught} {_share(detection.recall)}  {rules}")
        mistaken = len(detection.mistaken)
        self.stdout.write(
            f"questions  {detection.questions:>6}  mistaken {mistaken} {_share(detection.mistaken_share)}"
        )
        if options["errors"]:
            for text in detection.missed:
                self.stdout.write(f"missed: {text!r}")
            for text in detection.mistaken:
                self.stdout.write(f"mistaken ({find_instruction(text)}): {text!r}")


def _share(share: float | None) -> str:
    return "" if share is None else f"({share:.2%})"


def _as_json(detection: Detection) -> dict[str, Any]:
    return {
        "attempts": detection.attempts,
        "recall": None if detection.recall is None else round(detection.recall, 4),
        "by_rule": dict(detection.by_rule.most_common()),
        "questions": detection.questions,
        "mistaken": len(detection.mistaken),
        "mistaken_share": None if detection.mistaken_share is None else round(detection.mistaken_share, 6),
    }
