"""A bound on the password hashes that a web server computes at once: each takes some tenths of a second."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from retrieval.resilience.slots import Slots

WAIT_SECONDS = 2.0
# One, so that the other processors are left to the pages; and one for those whom strangers must not keep waiting.
_slots, _kept_slots = Slots(1), Slots(1)


class HashingBusy(Exception):
    """Too many passwords are being checked at this moment."""


@contextmanager
def slot(*, is_known: bool = False) -> Iterator[None]:
    """The right to compute a hash; ``is_known`` for an account that has signed in from this address before.

    Raises: HashingBusy when none comes free in time.
    """
    with contextlib.ExitStack() as held:
        try:
            slots = _kept_slots if is_known else _slots
            held.enter_context(slots.take(lambda waited_seconds: waited_seconds < WAIT_SECONDS))
        except TimeoutError:
            raise HashingBusy from None
        yield
