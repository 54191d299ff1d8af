"""The project: settings, addresses, processes. Apps do not import it."""

import os

# Matrix products of a search are small. OpenBLAS threads would spin while they wait, and slow other searches. NumPy
# reads the variable when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from ragsite.celery import app as celery_app

__all__ = ["celery_app"]
