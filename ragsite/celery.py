"""The Celery application; configured by the CELERY_* settings."""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.signals import worker_process_init

from ragsite import memory

app = Celery("ragsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def _go_before_the_database(**_: Any) -> None:
    memory.go_before_others(memory.WORK_SCORE)
