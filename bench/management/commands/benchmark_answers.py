from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings

from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, format_markdown_table, parse_positive_number
from bench.speed.answer_stages import WARM_UP, StageRun, measure_answer_stages
from evaluation.exceptions import UnreadableTestSet
from evaluation.statistics import round_figures
from retrieval.management.prepared import MigratedDatabaseCommand

NAMES = {"search.fusion": "search: fusion", "search.rerank": "search: reranking", "search": "search: the rest"}


class Command(MeasuringCommand, MigratedDatabaseCommand):
    help = (
        "Ask questions through the chat's own code, and print the processor time of an answer by stage, beside that of "
        "encoding the question alone. Nothing is saved."
    )
    section = "answers"

    def add_arguments(self, parser: ArgumentParser) -> None:
        demo = settings.BASE_DIR / "demo" / "questions.json"
        parser.add_argument("file", nargs="?", type=Path, default=demo, help="JSON with questions (the demo's).")
        parser.add_argument("--collection", default="", metavar="SLUG", help="All that a visitor may read, without.")
        parser.add_argument(
            "--limit", type=parse_positive_number, default=60, metavar="N", help="Questions that count (60)."
        )
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> StageRun:
        try:
            questions = [each["question"] for each in json.loads(options["file"].read_text())["questions"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UnreadableTestSet(f"{options['file']} cannot be read as questions: {error}") from error
        return measure_answer_stages(questions[: WARM_UP + options["limit"]], options["collection"], report)

    def as_markdown(self, measured: StageRun) -> str:
        total, first = measured.total(), measured.first_token()
        rows = [[NAMES.get(stage, stage), f"{mean:.1f}"] for stage, mean in measured.mean_ms().items()]
        return (
            f"{measured.answers} answers. Processor time, p50 / p95: {total.p50:.0f} / {total.p95:.0f} ms, "
            f"{total.p50 / measured.reference_ms:.0f} times that of encoding a question alone "
            f"({measured.reference_ms:.1f} ms). To the first word on the clock: {first.p50:.0f} / {first.p95:.0f} ms."
            f"\n\n{format_markdown_table(['stage', 'processor ms, mean'], rows)}"
        )

    def as_json(self, measured: StageRun) -> dict[str, Any]:
        return {
            "answers": measured.answers,
            "processor_ms": round_figures(measured.total(), 2),
            "stages_ms": {stage: round(mean, 2) for stage, mean in measured.mean_ms().items()},
            "first_token_ms": round_figures(measured.first_token(), 2),
            "encoding_ms": round(measured.reference_ms, 2),
        }
