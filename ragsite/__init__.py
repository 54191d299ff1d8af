"""The Django project: settings, URLs and processes. The apps must not import it."""

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# With Python's limit of 700 new objects, the garbage collector takes a fifth of each start, because Django and the apps
# create half a million objects that stay. Each answer creates thousands more.
gc.set_threshold(50_000, 10, 10)

from ragsite.celery import app as celery_app  # noqa: E402

__all__ = ["celery_app"]
