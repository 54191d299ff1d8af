"""The project: settings, addresses, processes. Apps do not import it."""

import os

# Spinning OpenBLAS threads would slow other searches. NumPy reads the variable at import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from ragsite.celery import app as celery_app

__all__ = ["celery_app"]
