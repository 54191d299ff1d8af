"""Background work of evaluation. Each task is a thin way to call a function that is safe to run twice."""

from __future__ import annotations

from celery import shared_task

from evaluation import gates, judgements
from evaluation.experiments import exposures
from evaluation.runs import run_execution as measuring


@shared_task
def judge_answer(judgement_id: int) -> None:
    judgements.judge(judgement_id)


@shared_task
def measure_evaluation_run(run_id: int) -> None:
    measuring.measure(run_id)


@shared_task
def request_forgotten() -> None:
    """Have judged and recorded what no process did, because it died right after the answer."""
    try:
        judgements.request_forgotten()
    finally:
        exposures.sweep()


@shared_task
def watch_documents() -> None:
    gates.watch()
