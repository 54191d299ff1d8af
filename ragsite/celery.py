"""The Celery application; configured by the CELERY_* settings."""

from __future__ import annotations

from celery import Celery

app = Celery("ragsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
