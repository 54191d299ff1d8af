from __future__ import annotations

import contextlib

from celery import shared_task

from chat.answering import model_trial, writers
from chat.curation.followed_upkeep import send_notice
from core.exceptions import ModelFailed


@shared_task
def try_model(name: str) -> None:
    model = writers.list_language_models().get(name)
    if model is not None:
        with contextlib.suppress(ModelFailed):
            model_trial.try_model(model)


@shared_task
def send_change_notice(notice_id: int) -> None:
    send_notice(notice_id)
