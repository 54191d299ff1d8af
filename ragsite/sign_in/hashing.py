"""A bound on the password hashes that a web server computes at once: each takes some tenths of a second."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from retrieval.resilience.slots import Slots

# One, so that the other processors are left to the pages.
HASHES_AT_ONCE = 1
WAIT_SECONDS = 2.0

_slots = Slots(HASHES_AT_ONCE)


class HashingBusy(Exception):
    """Too many passwords are being checked at this moment."""


@contextmanager
def slot() -> Iterator[None]:
    """The right to compute a hash. Raises: HashingBusy when none comes free in time."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(_slots.take(lambda waited_seconds: waited_seconds < WAIT_SECONDS))
        except TimeoutError:
            raise HashingBusy from None
        yield
