from __future__ import annotations

from celery import shared_task

from evaluation import gates, judgements
from evaluation.embedder_trials import attempts
from evaluation.runs import run_execution as measuring


@shared_task
def judge_answer(judgement_id: int) -> None:
    judgements.judge_answer(judgement_id)


@shared_task
def measure_evaluation_run(run_id: int) -> None:
    measuring.measure_run(run_id)
    gates.decide_instruction_activations()


@shared_task
def try_embedder(trial_id: int) -> None:
    attempts.continue_embedder_trial(trial_id)


@shared_task
def request_forgotten() -> None:
    """Finish the work of dead processes: request missing judgements, and decide which instructions become active."""
    judgements.request_missing_judgements()
    gates.decide_instruction_activations()
