"""Limit the searches that one process runs at once for API requests and pages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.utils.translation import gettext as _

from core import database
from retrieval.exceptions import SearchBusy
from retrieval.metrics import REFUSED_SEARCHES

# Over the API and from pages, by one process: each takes two of the retrievers' threads, and answers need the others.
SEARCHES_AT_ONCE, SEARCH_WAIT_SECONDS = 4, 1.0


_places = threading.BoundedSemaphore(SEARCHES_AT_ONCE)


@contextmanager
def place_to_search() -> Iterator[None]:
    """A place to search for a request that is answered at once. Raises: SearchBusy if none becomes free in time."""
    # Those who search need the connections of those who wait.
    database.give_connections_back()
    if not _places.acquire(timeout=SEARCH_WAIT_SECONDS):
        REFUSED_SEARCHES.inc()
        raise SearchBusy(_("Too many searches are running. Please try again in a few seconds."))
    try:
        yield
    finally:
        _places.release()
