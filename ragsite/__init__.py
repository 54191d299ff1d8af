"""The project: settings, addresses, processes. Apps do not import it."""

import os

# Products of a search are small: threads of their own wait for each other in a spin, and take the processor from the
# searches beside. It counts only before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from ragsite.celery import app as celery_app

__all__ = ["celery_app"]
