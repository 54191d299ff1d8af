"""Background work of evaluation. Each task is a thin way to call a function that is safe to run twice."""

from __future__ import annotations

from celery import shared_task


@shared_task
def judge_answer(judgement_id: int) -> None:
    from evaluation.judgements import execution

    execution.judge(judgement_id)


@shared_task
def sweep_judgements() -> None:
    from evaluation.judgements import judgement_queue

    judgement_queue.sweep()


@shared_task
def judge_forgotten_answers() -> None:
    from evaluation.judgements import judgement_queue

    judgement_queue.request_forgotten()


@shared_task
def sweep_exposures() -> None:
    from evaluation.experiments import exposures

    exposures.sweep()


@shared_task
def measure_evaluation_run(run_id: int) -> None:
    from evaluation.runs import execution

    execution.measure(run_id)


@shared_task
def sweep_evaluation_runs() -> None:
    from evaluation.runs import queue

    queue.sweep()


@shared_task
def watch_documents() -> None:
    from evaluation import gates

    gates.watch()
