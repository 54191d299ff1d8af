"""The project: settings, addresses, processes. Apps do not import it."""

from ragsite.celery import app as celery_app

__all__ = ["celery_app"]
