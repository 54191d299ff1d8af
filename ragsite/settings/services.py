from __future__ import annotations

from typing import NotRequired, TypedDict

from celery.schedules import crontab
from django.core.exceptions import ImproperlyConfigured
from kombu import Exchange, Queue
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ragsite.postgres.embedded import EmbeddedPostgres
from ragsite.settings import env
from ragsite.settings.env import DATA_DIR

DATABASE_URL = env.read_string("DATABASE_URL")
EMBEDDED_POSTGRES = None if DATABASE_URL else EmbeddedPostgres(DATA_DIR)
database_url = EMBEDDED_POSTGRES.url if EMBEDDED_POSTGRES else DATABASE_URL

DATABASES: dict[str, dict[str, object]] = {
    "default": {
        "ENGINE": "ragsite.postgres.backend",
        **env.parse_database_url(database_url),
        "CONN_HEALTH_CHECKS": True,
        # The processes of the web server use a pool instead (ragsite/processes/web.py).
        "CONN_MAX_AGE": None,
    }
}

CACHES: dict[str, dict[str, str | dict[str, int]]] = {
    # All processes share this cache, because allauth counts sign-in attempts here.
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "ragsite_cache",
        # In a small cache, one caller's many entries could evict other callers' counts.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

CELERY_BROKER_URL = env.read_string("CELERY_BROKER_URL", "pgmq://localhost")
CELERY_TASK_TIME_LIMIT = 25 * 60
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, str | float] = {
    # The broker gives a task that runs longer than this to a second worker.
    "visibility_timeout": CELERY_TASK_TIME_LIMIT + 5 * 60
}
if CELERY_BROKER_URL.startswith("pgmq:"):
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        # pgmq does not find a Unix socket in a URL, so the address is given as keywords.
        "conn_string": make_conninfo("", **conninfo_to_dict(database_url)),
        "init_extension": False,
        # A wait for tasks in one queue would delay the other queues.
        "wait_time_seconds": 0,
        "polling_interval": 0.5,
        "pool_size": 4,
        "pool_timeout": 5,
    }
elif CELERY_BROKER_URL.startswith("redis"):
    # The larger defaults give a killed worker's tasks to other workers too late.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {"unacked_restore_interval": 5, "unacked_restore_throttle": 1}
QUEUES = {
    "documents": ("retrieval.tasks.ingest_document", "retrieval.tasks.resume_draft", "retrieval.tasks.sync_source"),
    "deliveries": ("retrieval.tasks.deliver_webhook", "chat.tasks.send_change_notice"),
    "judgements": (
        "evaluation.tasks.judge_answer", "evaluation.tasks.measure_evaluation_run", "chat.tasks.try_model"
    ),
    "maintenance": ("*",),
}  # fmt: skip
CELERY_TASK_ROUTES = {task: {"queue": queue} for queue, tasks in QUEUES.items() for task in tasks}
# A worker without `--queues` takes tasks from all these queues. An old release still sends to the queue `celery`.
CELERY_TASK_QUEUES = [Queue(name, Exchange(name), routing_key=name) for name in (*QUEUES, "celery")]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "ragsite.processes.worker_pool:TaskPool"
CELERY_WORKER_MAX_TASKS_PER_CHILD = 500
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 1500 * 1024
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}
CELERY_BEAT_SCHEDULER = "ragsite.processes.beat:Scheduler"
SCHEDULER_SEEN_FILE = DATA_DIR / "scheduler.seen"


class ScheduledTask(TypedDict):
    """A task that the scheduler sends, at an interval in seconds or at a time of day."""

    task: str
    schedule: float | crontab
    options: NotRequired[dict[str, float]]


CELERY_BEAT_SCHEDULE: dict[str, ScheduledTask] = {
    "sweep": {"task": "retrieval.tasks.sweep", "schedule": 15.0},
    "request-due-sources": {"task": "retrieval.tasks.request_due_sources", "schedule": 20.0},
    "request-forgotten": {"task": "evaluation.tasks.request_forgotten", "schedule": 300.0},
    "forget-deleted-documents": {"task": "ragsite.tasks.forget_deleted_documents", "schedule": 60.0},
    "delete-old": {"task": "ragsite.tasks.delete_old", "schedule": 3600.0},
    "check-indexes": {"task": "retrieval.tasks.reconcile", "schedule": crontab(hour="3", minute="30")},
}
for _entry in CELERY_BEAT_SCHEDULE.values():
    # A task that starts later than this is dropped, because the next one does the same.
    _entry["options"] = {"expires": 900.0}

OTEL_ENDPOINT = env.read_string("OTEL_EXPORTER_OTLP_ENDPOINT")

LOG_FORMAT = env.read_string("LOG_FORMAT", "text").lower()
if LOG_FORMAT not in ("text", "json"):
    raise ImproperlyConfigured(f"LOG_FORMAT must be text or json, not {LOG_FORMAT!r}.")
LOG_REQUESTS = LOG_FORMAT == "json"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "ragsite.operations.logs.TextFormatter",
            "format": "{asctime} {levelname:<7} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "ragsite.operations.logs.JsonFormatter"},
    },
    "filters": {"refusals": {"()": "ragsite.operations.logs.ClientErrorTracebackFilter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["refusals"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {name: {"level": "INFO"} for name in ("ragsite", "core", "retrieval", "chat", "evaluation")},
}
