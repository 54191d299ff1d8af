"""The schedule of background work, on a disk that may be full."""

from __future__ import annotations

import dbm
import logging
import time
from pathlib import Path
from typing import Any

from celery.beat import PersistentScheduler
from django.conf import settings

logger = logging.getLogger(__name__)

# The time of this file is when the schedule was last looked at. Setting it needs no room on the disk.
SEEN_FILE = "scheduler.seen"
SEEN_EVERY_SECONDS = 5.0

_NOT_WRITTEN: tuple[type[Exception], ...] = (*dbm.error, OSError)


def seconds_since_last_look() -> float | None:
    """How long ago a scheduler with this data directory looked at its schedule; None when none ever has."""
    try:
        return max(0.0, time.time() - (Path(settings.DATA_DIR) / SEEN_FILE).stat().st_mtime)
    except FileNotFoundError:
        return None


class _InMemory(dict[str, Any]):
    """In place of the schedule's file: what is due after a restart is then reckoned from the restart."""

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


class Scheduler(PersistentScheduler):
    """Celery's own, which goes on without its file when that cannot be written."""

    schedule_filename: str
    _seen_at = 0.0

    def setup_schedule(self) -> None:
        try:
            super().setup_schedule()
        except _NOT_WRITTEN as error:
            logger.error("The schedule cannot be kept in %s, it is kept in memory: %s", self.schedule_filename, error)
            self._store = None
            self._open_schedule = _InMemory
            super().setup_schedule()

    def tick(self, *args: Any, **kwargs: Any) -> float:
        if time.monotonic() - self._seen_at > SEEN_EVERY_SECONDS:
            self._seen_at = time.monotonic()
            try:
                (Path(settings.DATA_DIR) / SEEN_FILE).touch()
            except OSError as error:
                logger.warning("The scheduler cannot say that it runs: %s", error)
        delay: float = super().tick(*args, **kwargs)
        return delay

    def sync(self) -> None:
        try:
            super().sync()
        except _NOT_WRITTEN as error:
            logger.warning("The schedule could not be written to %s: %s", self.schedule_filename, error)
