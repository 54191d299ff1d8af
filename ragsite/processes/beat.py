"""The scheduler process, `python -m ragsite.processes.beat`. Its state is in memory, so a full disk does not stop it.

It replaces Celery's command, which would load all apps.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from celery import beat
from celery.apps.beat import Beat
from django.conf import settings

from ragsite.celery import app

logger = logging.getLogger(__name__)

SEEN_EVERY_SECONDS = 5.0


class Scheduler(beat.Scheduler):
    """Celery's scheduler, which also touches a file regularly to show that the scheduler runs."""

    _seen_at = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> float:
        if time.monotonic() - self._seen_at > SEEN_EVERY_SECONDS:
            self._seen_at = time.monotonic()
            try:
                settings.SCHEDULER_SEEN_FILE.touch()
            except OSError as error:
                logger.warning("The scheduler cannot say that it runs: %s", error)
        delay: float = super().tick(*args, **kwargs)
        return delay


class _Beat(Beat):
    def init_loader(self) -> None:
        """Import no tasks, because the scheduler sends them by their names."""
        app.finalize()


def main() -> None:
    _Beat(app=app, loglevel="WARNING", quiet=True).run()


if __name__ == "__main__":
    main()
