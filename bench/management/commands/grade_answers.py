from __future__ import annotations

import json
from argparse import ArgumentParser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.test.utils import override_settings

from bench.answers.askers import InProcessAsker, SiteAsker
from bench.answers.graded import GradedAnswerRun, GradedReply, ask_graded_questions, read_graded_questions
from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, format_markdown_table
from chat.answering.writers import find_generator
from evaluation.exceptions import EvaluationError
from evaluation.statistics import Interval, round_figures
from retrieval.management.prepared import MigratedDatabaseCommand

SHARES = {
    "zeros": "useless (no points)",
    "near_misses_refused": "near misses refused",
    "off_topic_refused": "off-topic refused",
    "wrongly_refused": "answerable, but refused",
    "on_page": "all on the page, with what is shown beside the answer",
    "too_long": "complete, but too long",
    "failed": "failed",
}


class Command(MeasuringCommand, MigratedDatabaseCommand):
    help = (
        "Ask questions with what a good answer holds, grade what comes back from 0 to 3, and print the mean points by "
        "kind of question and by corpus, with 95 % bootstrap intervals, and what was refused rightly and wrongly."
    )
    section = "graded answers"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="JSON lines; bench/answers/graded.py says what a line holds.")
        parser.add_argument("--url", default="", help="Of a running site; without it this site's own code answers.")
        parser.add_argument("--token", default="", help="Of a running site that asks who is there.")
        parser.add_argument("--corpus", default="", help="Only the questions of this corpus.")
        parser.add_argument(
            "--model", action="store_true", help="The configured language model writes; without it, passages are shown."
        )
        parser.add_argument("--save", type=Path, metavar="FILE", help="Write each graded answer, a line each.")
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> GradedAnswerRun:
        questions = read_graded_questions(options["file"])
        asked = [question for question in questions if options["corpus"] in ("", question.corpus)]
        if not asked:
            raise EvaluationError(f"{options['file']} asks nothing of the corpus {options['corpus']!r}.")
        if options["model"] and find_generator() is None:
            raise EvaluationError("No language model is configured: set LOCAL_MODEL, or OPENAI_BASE_URL.")
        with ExitStack() as stack:
            save = stack.enter_context(options["save"].open("w", encoding="utf-8")) if options["save"] else None

            def report_and_save(number: int, graded: GradedReply) -> None:
                report("asking", number, len(asked))
                if save is not None:
                    save.write(json.dumps(graded.as_json(), ensure_ascii=False) + "\n")

            if not options["model"]:
                stack.enter_context(override_settings(OPENAI_MODEL=""))
            asker = SiteAsker(options["url"], options["token"]) if options["url"] else InProcessAsker()
            return ask_graded_questions(asked, asker, report_and_save)

    def as_markdown(self, run: GradedAnswerRun) -> str:
        points = format_markdown_table(["mean points of 3 (questions)", *run.corpora, "all"], _make_rows(run))
        return f"{points}\n\n{format_markdown_table(['share of the questions', ''], _make_figure_rows(run))}"

    def as_json(self, run: GradedAnswerRun) -> dict[str, Any]:
        def summarize_points(kind: str = "", corpus: str = "") -> dict[str, float] | None:
            interval = run.compute_mean_points(kind=kind, corpus=corpus)
            number = len(run.filter_replies(kind=kind, corpus=corpus))
            return None if interval is None else {**round_figures(interval), "questions": number}

        seconds = run.compute_wait_percentiles()
        return {
            "points": summarize_points(),
            "kinds": {kind: summarize_points(kind) for kind in run.question_kinds},
            "corpora": {
                corpus: {
                    "all": summarize_points(corpus=corpus),
                    **{kind: summarize_points(kind, corpus) for kind in run.question_kinds},
                }
                for corpus in run.corpora
            },
            "shares": {
                name: None if share is None else round_figures(share)
                for name, share in run.compute_outcome_shares().items()
            },
            "seconds": None if seconds is None else round_figures(seconds, 2),
        }


def _format_mean_points(run: GradedAnswerRun, kind: str, corpus: str = "") -> str:
    points = run.compute_mean_points(kind=kind, corpus=corpus)
    if points is None:
        return "-"
    number = len(run.filter_replies(kind=kind, corpus=corpus))
    return f"{points.mean:.2f} ({number})" if kind and corpus else f"{_format_interval(points)} ({number})"


def _format_interval(figure: Interval) -> str:
    return f"{figure.mean:.2f} [{figure.low:.2f} {figure.high:.2f}]"


def _make_rows(run: GradedAnswerRun) -> list[list[str]]:
    kinds = [(kind, kind.replace("_", " ")) for kind in run.question_kinds]
    return [
        [label, *(_format_mean_points(run, kind, corpus) for corpus in run.corpora), _format_mean_points(run, kind)]
        for kind, label in [*kinds, ("", "all")]
    ]


def _make_figure_rows(run: GradedAnswerRun) -> list[list[str]]:
    rows = [
        [SHARES[name], _format_interval(share)]
        for name, share in run.compute_outcome_shares().items()
        if share is not None
    ]
    if seconds := run.compute_wait_percentiles():
        rows.append(["seconds, p50 / p95", f"{seconds.p50:.2f} / {seconds.p95:.2f}"])
    return rows
