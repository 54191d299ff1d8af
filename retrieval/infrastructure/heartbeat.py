"""The heartbeat of a process that works on a leased row."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, connection

from retrieval.infrastructure.lease import Leased, renew

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0


@contextmanager
def heartbeat(job: Leased) -> Iterator[None]:
    """Renews the lease again and again, from a thread of its own, until the block ends.

    A lease that was lost is not renewed. When the database is away for a moment, the next heartbeat tries again; when
    it stays away, the lease is lost and another process does the work.
    """
    stop = threading.Event()
    held, name = job.held(), job.job_name

    def beat() -> None:
        try:
            while not stop.wait(HEARTBEAT_SECONDS):
                try:
                    renew(held)
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
