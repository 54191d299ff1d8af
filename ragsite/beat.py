"""The scheduler's process, `python -m ragsite.beat`. It keeps working if the disk is full.

Celery's own command loads every app of the site to send the names of a few tasks. This one loads the settings.
"""

from __future__ import annotations

import dbm
import logging
import time
from typing import Any

from celery.apps.beat import Beat
from celery.beat import PersistentScheduler
from django.conf import settings

from ragsite.celery import app

logger = logging.getLogger(__name__)

SEEN_EVERY_SECONDS = 5.0

_NOT_WRITTEN: tuple[type[Exception], ...] = (*dbm.error, OSError)


class _InMemory(dict[str, Any]):
    """A schedule in memory, used if its file cannot be written: after a restart, intervals count from the restart."""

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass


class Scheduler(PersistentScheduler):
    """Celery's scheduler, which continues without its file if that cannot be written."""

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
                settings.SCHEDULER_SEEN_FILE.touch()
            except OSError as error:
                logger.warning("The scheduler cannot say that it runs: %s", error)
        delay: float = super().tick(*args, **kwargs)
        return delay

    def sync(self) -> None:
        try:
            super().sync()
        except _NOT_WRITTEN as error:
            logger.warning("The schedule could not be written to %s: %s", self.schedule_filename, error)


class _Beat(Beat):
    def init_loader(self) -> None:
        """Nothing is imported: tasks are sent by the names that the schedule has."""
        app.finalize()


def main() -> None:
    _Beat(app=app, loglevel="WARNING", quiet=True).run()


if __name__ == "__main__":
    main()
