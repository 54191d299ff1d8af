"""Background work of the chat."""

from __future__ import annotations

from celery import shared_task

from chat.answering.model_trial import try_configured_model


@shared_task
def try_model() -> None:
    try_configured_model()
