"""The Django project: settings, URLs and processes. The apps must not import it."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from ragsite.celery import app as celery_app

__all__ = ["celery_app"]
