from __future__ import annotations

import logging.config
import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_process_init

from ragsite.operations import logs  # noqa: F401  (connects its signals)
from ragsite.processes import machine

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
app = Celery("ragsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def _raise_worker_oom_score(**_: Any) -> None:
    machine.raise_oom_score(machine.WORK_SCORE)


@setup_logging.connect
def _log_as_the_site_does(loglevel: int | str, **_: Any) -> None:
    """Set up logging as in the site's other processes, because Celery's own format has no request id."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)
    logging.getLogger("celery").setLevel(loglevel)
