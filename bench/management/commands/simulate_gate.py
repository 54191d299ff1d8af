"""How often a gate refuses, on simulated runs: where nothing was lost, and where a share of the questions was."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from bench.gate_simulation import refusal_rate
from retrieval.infrastructure.progress import ProgressBar

QUESTIONS = (3, 10, 25, 50, 100, 300)
# The share of the questions that one run alone finds, as often the one as the other.
DIFFERING = (0.1, 0.2, 0.3)
# The share of the questions that the baseline alone finds, beside them.
LOST = (0.0, 0.05, 0.1)


class Command(BaseCommand):
    help = "Simulate pairs of runs, with and without a loss, and print how often a gate refuses."
    # Neither the database nor any backend takes part.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repetitions", type=int, default=400, help="Pairs of runs for each figure.")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["repetitions"] < 1:
            raise CommandError("At least one pair of runs is needed for a share.")
        cells = [(lost, questions, differing) for lost in LOST for questions in QUESTIONS for differing in DIFFERING]
        progress = ProgressBar(self.stderr)
        refused = {}
        for done, (lost, questions, differing) in enumerate(cells):
            progress.show("Figures simulated", done, len(cells))
            refused[lost, questions, differing] = refusal_rate(
                questions, differing=differing, lost=lost, repetitions=options["repetitions"]
            )
        progress.clear()
        if options["json"]:
            rows = [
                {"lost": lost, "questions": questions, "differing": differing, "refused": round(share, 4)}
                for (lost, questions, differing), share in refused.items()
            ]
            self.stdout.write(json.dumps({"repetitions": options["repetitions"], "cells": rows}))
            return
        self.stdout.write("questions  " + "  ".join(f"{lost:.0%} lost".rjust(12) for lost in LOST))
        for questions in QUESTIONS:
            shares = [[refused[lost, questions, differing] for differing in DIFFERING] for lost in LOST]
            ranges = (f"{min(share):.1%}–{max(share):.1%}".rjust(12) for share in shares)
            self.stdout.write(f"{questions:>9}  " + "  ".join(ranges))
