"""Background work of the chat."""

from __future__ import annotations

from celery import shared_task


@shared_task
def close_interrupted_answers() -> None:
    from chat.streaming import streams

    streams.close_interrupted()
