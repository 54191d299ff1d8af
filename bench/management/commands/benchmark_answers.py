"""Where the processor time of an answer goes."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from bench.reporting import positive, replace_section, table
from bench.speed.answer_stages import WARM_UP, StageRun, run
from evaluation.exceptions import EvaluationError
from evaluation.statistics import rounded
from retrieval.exceptions import RetrievalError
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand

SECTION = "answers"
NAMES = {"search.fusion": "search: fusion", "search.rerank": "search: reranking", "search": "search: the rest"}


class Command(PreparedCommand):
    help = (
        "Ask questions through the chat's own code, and print the processor time of an answer by stage, beside that of "
        "encoding the question alone. Nothing is saved."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        demo = settings.BASE_DIR / "demo" / "questions.json"
        parser.add_argument("file", nargs="?", type=Path, default=demo, help="JSON with questions (the demo's).")
        parser.add_argument("--collection", default="", metavar="SLUG", help="All that a visitor may read, without.")
        parser.add_argument("--limit", type=positive, default=60, metavar="N", help="Questions that count (60).")
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")
        parser.add_argument("--write", type=Path, metavar="FILE", help="Put table and chart into this Markdown page.")

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        try:
            questions = [each["question"] for each in json.loads(options["file"].read_text())["questions"]]
            measured = run(questions[: WARM_UP + options["limit"]], options["collection"], bar.show)
            if options["write"]:
                replace_section(options["write"], SECTION, _as_markdown(measured))
        except (EvaluationError, RetrievalError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{options['file']} cannot be read as questions: {error}") from error
        finally:
            bar.clear()
        self.stdout.write(json.dumps(_as_json(measured)) if options["json"] else _as_markdown(measured))


def _as_markdown(measured: StageRun) -> str:
    means = measured.mean_ms()
    total, first = measured.total(), measured.first_token()
    rows = [[NAMES.get(stage, stage), f"{mean:.1f}"] for stage, mean in means.items()]
    parts = "\n".join(f'    "{NAMES.get(stage, stage)}" : {mean:.1f}' for stage, mean in means.items() if mean >= 0.05)
    return "\n\n".join(
        [
            f"{measured.answers} answers. Processor time, p50 / p95: {total.p50:.0f} / {total.p95:.0f} ms, "
            f"{total.p50 / measured.reference_ms:.0f} times that of encoding a question alone "
            f"({measured.reference_ms:.1f} ms). To the first word on the clock: {first.p50:.0f} / {first.p95:.0f} ms.",
            table(["stage", "processor ms, mean"], rows),
            f"```mermaid\npie showData title Processor milliseconds of an answer\n{parts}\n```",
        ]
    )


def _as_json(measured: StageRun) -> dict[str, Any]:
    return {
        "answers": measured.answers,
        "processor_ms": rounded(measured.total(), 2),
        "stages_ms": {stage: round(mean, 2) for stage, mean in measured.mean_ms().items()},
        "first_token_ms": rounded(measured.first_token(), 2),
        "encoding_ms": round(measured.reference_ms, 2),
    }
