"""Celery: the broker, the worker and what is done by the clock."""

from __future__ import annotations

from typing import Any

from celery.schedules import crontab
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ragsite.settings import env
from ragsite.settings.database import database_url
from ragsite.settings.paths import DATA_DIR

# With pgmq, the host in the URL is not used: the queue is where the tables are.
CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", "pgmq://localhost")
CELERY_TASK_TIME_LIMIT = 25 * 60
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
    # Longer than any task may run, or the broker hands a running task to a second worker.
    "visibility_timeout": CELERY_TASK_TIME_LIMIT + 5 * 60
}
if CELERY_BROKER_URL.startswith("pgmq:"):
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        # As keywords, because pgmq finds no socket in a URL.
        "conn_string": make_conninfo("", **conninfo_to_dict(database_url)),
        "init_extension": False,
        "wait_time_seconds": 1,
        # Ten times a second would be a third of what an idle site takes of a core.
        "poll_interval_ms": 250,
        "polling_interval": 0.2,
        "pool_size": 4,
        "pool_timeout": 5,
    }
elif CELERY_BROKER_URL.startswith("redis"):
    # With the defaults a killed worker's tasks were not back after 45 seconds.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {"unacked_restore_interval": 5, "unacked_restore_throttle": 1}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "ragsite.worker_pool:TaskPool"
CELERY_WORKER_MAX_TASKS_PER_CHILD = 500
# In KiB. A child that has grown beyond it is replaced when its task is done.
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 1500 * 1024
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "ragsite.beat:Scheduler"
# The time of this file is when the schedule was last looked at. Setting it needs no room on the disk.
SCHEDULER_SEEN_FILE = DATA_DIR / "scheduler.seen"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "celerybeat-schedule")
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "retrieval.tasks.sweep", "schedule": 15.0},
    "request-due-sources": {"task": "retrieval.tasks.request_due_sources", "schedule": 20.0},
    "request-forgotten": {"task": "evaluation.tasks.request_forgotten", "schedule": 300.0},
    "forget-sign-ins": {"task": "ragsite.tasks.forget_sign_ins", "schedule": 600.0},
    "forget-deleted-documents": {"task": "ragsite.tasks.forget_deleted_documents", "schedule": 60.0},
    "delete-old": {"task": "ragsite.tasks.delete_old", "schedule": crontab(hour="4", minute="10")},
    "check-indexes": {"task": "retrieval.tasks.reconcile", "schedule": crontab(hour="3", minute="30")},
}
