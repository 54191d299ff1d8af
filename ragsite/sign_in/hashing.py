"""A bound on the password hashes that a process computes at once: each takes some tenths of a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# One, so that the other processors are left to the pages.
HASHES_AT_ONCE = 1
WAIT_SECONDS = 2.0

_slots = threading.BoundedSemaphore(HASHES_AT_ONCE)


class HashingBusy(Exception):
    """Too many passwords are being checked at this moment."""


@contextmanager
def slot() -> Iterator[None]:
    """The right to compute a hash. Raises: HashingBusy when none comes free in time."""
    if not _slots.acquire(timeout=WAIT_SECONDS):
        raise HashingBusy
    try:
        yield
    finally:
        _slots.release()
