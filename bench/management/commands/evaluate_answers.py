from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.answers.runs import AnswerRun, measure_answers
from bench.answers.sets import Question, QuestionKind, choose_evenly, choose_off_topic_questions, read_beir_questions
from bench.beir import TestSet, read_test_set
from bench.corpora import choose_configuration, load_test_set_collection
from bench.management.measuring import MeasuringCommand
from bench.reporting import Report, format_figure, format_markdown_table, parse_positive_number
from evaluation.statistics import Interval, round_figures
from retrieval.management.prepared import MigratedDatabaseCommand

FIGURES = {
    "answered": "answerable questions that are answered",
    "answer_in_sources": "right answer among the sources found",
    "citation_precision": "citation precision: quoted words hold the answer",
    "citation_recall": "citation recall: quoted words",
    "refusal_recall_off_topic": "refusal recall, off-topic",
    "refusal_precision_off_topic": "refusal precision, off-topic",
    "refusal_recall_adversarial": "refusal recall, adversarial",
    "refusal_precision_adversarial": "refusal precision, adversarial",
}
LATENCIES = {"first_token": "first token", "last_token": "last token", "refusal": "refusal"}


class Command(MeasuringCommand, MigratedDatabaseCommand):
    help = (
        "Ask questions with known answers, and questions without one, as users ask them, and print how often the "
        "citations hold the answer, how often what has no answer is refused, and milliseconds to the first and last "
        "token; shares with 95 % bootstrap intervals."
    )
    section = "answers"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "folders",
            nargs="+",
            type=Path,
            metavar="DIR",
            help='In BEIR\'s form, with "answers" in queries.jsonl; unanswerable.jsonl holds adversarial questions.',
        )
        parser.add_argument(
            "--off-topic",
            type=Path,
            action="append",
            default=[],
            metavar="DIR",
            help="Whose questions are asked of every other set: its subject must be foreign to theirs.",
        )
        parser.add_argument(
            "--limit", type=parse_positive_number, metavar="N", help="Of each kind of question, spread evenly."
        )
        super().add_arguments(parser)

    def measure(self, options: dict[str, Any], report: Report) -> list[AnswerRun]:
        # All sets are read first, so that a misspelt folder fails at once, not after an hour.
        sets = [read_beir_questions(folder) for folder in options["folders"]]
        foreign = [read_test_set(folder) for folder in options["off_topic"]]
        runs = []
        for test_set, questions in sets:
            collection = load_test_set_collection(
                test_set, configuration=choose_configuration(test_set), chunked=False, report=report
            )
            asked = _choose_questions(
                questions, [other for other in foreign if other.name != test_set.name], options["limit"]
            )
            runs.append(measure_answers(test_set.name, asked, collection, report=report))
        return runs

    def as_markdown(self, runs: Sequence[AnswerRun]) -> str:
        rows = [
            [f"{kind.replace('_', '-')} questions", *(f"{len(run.filter_replies(kind)):,}" for run in runs)]
            for kind in QuestionKind
        ]
        of_runs = [run.compute_quality_figures() for run in runs]
        rows += [[label, *(_format_interval(figures[name]) for figures in of_runs)] for name, label in FIGURES.items()]
        latencies = [run.latency() for run in runs]
        rows += [
            [
                f"ms to {label}, p50 / p95",
                *(f"{found[name].p50:.0f} / {found[name].p95:.0f}" if name in found else "-" for found in latencies),
            ]
            for name, label in LATENCIES.items()
        ]
        return format_markdown_table(["", *(run.name for run in runs)], rows)

    def as_json(self, runs: Sequence[AnswerRun]) -> dict[str, Any]:
        return {
            "sets": [
                {
                    "name": run.name,
                    "generators": run.generator_names,
                    "questions": {kind.value: len(run.filter_replies(kind)) for kind in QuestionKind},
                    **{
                        name: None if found is None else round_figures(found)
                        for name, found in run.compute_quality_figures().items()
                    },
                    "latency_ms": {name: round_figures(latency, 2) for name, latency in run.latency().items()},
                }
                for run in runs
            ]
        }


def _choose_questions(
    questions: Sequence[Question], off_topic_sets: Sequence[TestSet], limit: int | None
) -> list[Question]:
    by_kind = {kind: [question for question in questions if question.kind is kind] for kind in QuestionKind}
    own = [question for kind in QuestionKind for question in choose_evenly(by_kind[kind], limit)]
    return [*own, *choose_off_topic_questions(off_topic_sets, limit)]


def _format_interval(interval: Interval | None) -> str:
    return (
        "-"
        if interval is None
        else f"{format_figure(interval.mean)} [{format_figure(interval.low)} {format_figure(interval.high)}]"
    )
