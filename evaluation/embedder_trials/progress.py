from __future__ import annotations

import time

from django.db import connection

from core.exceptions import LeaseLost
from evaluation.models import EmbedderTrial

Step = EmbedderTrial.Step

# After this time a worker stops, before CELERY_TASK_TIME_LIMIT ends it, and another one continues.
LONGEST_STINT_SECONDS = 10 * 60.0
_REPORT_SECONDS = 1.0


class TrialTimeExceeded(Exception):
    """An error: the worker has run the trial long enough. The next worker continues."""


class TrialProgress:
    """A callback that stores the progress of a trial, about once a second.

    Raises: LeaseLost if the trial was cancelled; TrialTimeExceeded after LONGEST_STINT_SECONDS, so that the next worker
    continues. The step SWITCH, in which the site changes to the tried embedder, has no time limit.
    """

    def __init__(self, trial: EmbedderTrial) -> None:
        self._trial, self._step = trial, Step(trial.step)
        self._ends_at = time.monotonic() + LONGEST_STINT_SECONDS
        self._stored_at = 0.0

    def begin(self, step: EmbedderTrial.Step, total: int = 0) -> None:
        self._step, self._stored_at = step, 0.0
        self(step, 0, total)

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._stored_at < _REPORT_SECONDS and done < total:
            return
        self._stored_at = now
        if not self._trial.write_under_lease(step=self._step, done=done, total=total):
            raise LeaseLost(f"{self._trial.job_name} was cancelled.")
        if now > self._ends_at and self._step is not Step.SWITCH:
            raise TrialTimeExceeded

    def report_download(self, what: str, done: int, total: int) -> None:
        """Store the progress of a download. The hub client calls this in its own thread."""
        now = time.monotonic()
        if now - self._stored_at >= _REPORT_SECONDS:
            self._stored_at = now
            self._trial.write_under_lease(step=Step.DOWNLOAD, done=done, total=total)
            connection.close()
