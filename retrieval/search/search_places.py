from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.translation import gettext as _

from core import database
from retrieval.exceptions import SearchBusy
from retrieval.metrics import REFUSED_SEARCHES

# Each search uses two of the retrievers' 16 threads; the other threads are for answers.
SEARCHES_AT_ONCE, SEARCH_WAIT_SECONDS = 4, 1.0


_places = threading.BoundedSemaphore(SEARCHES_AT_ONCE)


@contextmanager
def wait_for_search_slot() -> Iterator[None]:
    """Limit the number of searches at once. Raises: SearchBusy if none ends within SEARCH_WAIT_SECONDS."""
    database.release_connections()
    if not _places.acquire(timeout=SEARCH_WAIT_SECONDS):
        REFUSED_SEARCHES.inc()
        raise SearchBusy(_("Too many searches are running. Please try again in a few seconds."))
    try:
        yield
    finally:
        _places.release()
