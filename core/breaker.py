"""Circuit breakers: a server that fails repeatedly is not called for a while.

After ``failures`` failures in a row, calls fail at once for ``seconds``. Then one trial call is let through. If it
succeeds, all calls are allowed again.

Source: Nygard, "Release It!", 2nd edition, Pragmatic Bookshelf 2018, chapter 5.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from weakref import WeakValueDictionary

from core import deadline
from core.metrics import BREAKER_OPEN

logger = logging.getLogger(__name__)

FAILURES = 3
OPEN_SECONDS = 30.0
# Another trial may begin after this time.
TRIAL_SECONDS = 120.0


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    TRYING = "trying"


class BreakerOpen(Exception):
    """An error: the server is not called, because earlier calls failed. Its message is for the operator."""


class Breaker:
    """A circuit breaker for the calls to a server, which ``part`` names. Threads share it; processes do not."""

    def __init__(
        self,
        part: str,
        *,
        failures: int = FAILURES,
        seconds: float = OPEN_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.part = part
        self._failures_wanted = failures
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._opened_at: float | None = None
        self._trial_at: float | None = None
        _BREAKERS[part] = self
        BREAKER_OPEN.labels(part=part).set(0)

    @property
    def state(self) -> BreakerState:
        with self._lock:
            if self._opened_at is None:
                return BreakerState.CLOSED
            return BreakerState.OPEN if self._clock() < self._opened_at + self._seconds else BreakerState.TRYING

    def enter(self) -> None:
        """Begin a call. The caller must end it: ``record_success``, ``record_failure`` or ``end_call_without_result``.

        Raises: BreakerOpen if the server must not be called now.
        """
        question = deadline.get_current()
        if question is not None and not deadline.seconds_left(1.0):
            raise BreakerOpen(f"The {self.part} was not asked: the question's time is over.")
        if question is not None and self.part in question.failed:
            raise BreakerOpen(f"The {self.part} has failed this question before and is not asked again.")
        with self._lock:
            if self._opened_at is None:
                return
            now = self._clock()
            wait_seconds = self._opened_at + self._seconds - now
            if wait_seconds > 0:
                raise BreakerOpen(f"The {self.part} failed repeatedly and is left alone for {wait_seconds:.0f} s more.")
            if self._trial_at is not None and now < self._trial_at + TRIAL_SECONDS:
                raise BreakerOpen(
                    f"The {self.part} failed repeatedly; another question is trying whether it answers again."
                )
            self._trial_at = now

    def record_success(self) -> None:
        with self._lock:
            was_open, self._opened_at, self._trial_at, self._failures = self._opened_at, None, None, 0
        if was_open is not None:
            logger.warning("The %s answers again.", self.part)
            BREAKER_OPEN.labels(part=self.part).set(0)

    def record_failure(self) -> None:
        question = deadline.get_current()
        if question is not None:
            question.failed.add(self.part)
        with self._lock:
            self._failures += 1
            self._trial_at = None
            opens = self._opened_at is not None or self._failures >= self._failures_wanted
            if opens:
                self._opened_at = self._clock()
        if opens:
            BREAKER_OPEN.labels(part=self.part).set(1)
            logger.warning("The %s failed repeatedly and is left alone for %g s.", self.part, self._seconds)

    def end_call_without_result(self) -> None:
        """End a call that does not show whether the server works, such as an invalid request.

        It counts as neither success nor failure. If it was a trial call, another trial may begin.
        """
        with self._lock:
            self._trial_at = None

    @contextmanager
    def guard_call(self, failure: type[Exception]) -> Iterator[None]:
        """Run a block as one call of the server. The call has failed if the block raises ``failure``.

        Other exceptions count as neither success nor failure. Raises: BreakerOpen if the server must not be called now.
        """
        self.enter()
        try:
            yield
        except failure:
            self.record_failure()
            raise
        except BaseException:
            self.end_call_without_result()
            raise
        self.record_success()


_BREAKERS: WeakValueDictionary[str, Breaker] = WeakValueDictionary()


def list_breaker_states() -> dict[str, BreakerState]:
    return {part: breaker.state for part, breaker in sorted(_BREAKERS.items())}
