"""The Django project: settings, addresses and processes. The apps do not import it."""

import os

# More OpenBLAS threads would slow other searches, because they wait actively. NumPy reads the variable at import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from ragsite.celery import app as celery_app

__all__ = ["celery_app"]
