"""Telling, while long work goes on, that whoever claimed it lives."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, connection
from django.db.models import QuerySet
from django.utils import timezone

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0


@contextmanager
def heartbeat(held: QuerySet[Any], name: str) -> Iterator[None]:
    """Sets ``heartbeat_at`` of the rows in ``held`` again and again, from a thread of its own, until the block ends.

    ``held`` is the claimed row, filtered by the claim: a claim that was lost is not kept alive. A database that is away
    for a moment is tried again; should it last, the claim is lost and the work is done by another.
    """
    stop = threading.Event()

    def beat() -> None:
        try:
            while not stop.wait(HEARTBEAT_SECONDS):
                try:
                    held.update(heartbeat_at=timezone.now())
                except DatabaseError:
                    logger.warning("The heartbeat of %s was not stored.", name, exc_info=True)
                    connection.close()
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name=f"heartbeat of {name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
