"""Limit how many searches run and wait in one process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.translation import gettext as _

from core import database
from retrieval.exceptions import SearchBusy
from retrieval.metrics import REFUSED_SEARCHES

# Each search uses two of the retrievers' 16 threads. Answers need the others.
SEARCHES_AT_ONCE = 2
# A small machine can do about SEARCHES_WAITING searches in SEARCH_WAIT_SECONDS.
SEARCHES_WAITING, SEARCH_WAIT_SECONDS = 8, 1.0

_places = threading.BoundedSemaphore(SEARCHES_AT_ONCE)
_queue = threading.BoundedSemaphore(SEARCHES_AT_ONCE + SEARCHES_WAITING)


@contextmanager
def wait_for_search_slot() -> Iterator[None]:
    """Wait until few enough searches run. Raises: SearchBusy if too many wait, or the wait is too long."""
    # Searches that still run may need this thread's database connection.
    database.release_connections()
    if not _queue.acquire(blocking=False):
        _raise_search_busy()
    try:
        if not _places.acquire(timeout=SEARCH_WAIT_SECONDS):
            _raise_search_busy()
        try:
            yield
        finally:
            _places.release()
    finally:
        _queue.release()


def _raise_search_busy() -> None:
    REFUSED_SEARCHES.inc()
    raise SearchBusy(_("Too many searches are running. Please try again in a few seconds."))
