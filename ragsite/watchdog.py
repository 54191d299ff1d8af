"""Whether a process still answers, asked again and again from a thread."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Mapping

SILENT_SECONDS = 15.0
# One probe that is lost tells of a busy machine. This many in a row, each with its own time, tell of a process.
LEAST_PROBES = 3
PROBE_EVERY_SECONDS = 2.0
PROBE_TIMEOUT_SECONDS = 4.0
# A process that has just been started may read its models before it answers.
GRACE_SECONDS = 120.0


class Watchdog:
    """Says when ``probe`` has had no answer for ``silent_seconds``; nothing before the first answer, within the grace.

    A machine that is merely busy answers late, and an answer at all begins the count anew.
    """

    def __init__(
        self,
        probe: Callable[[], bool],
        *,
        silent_seconds: float = SILENT_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        every_seconds: float = PROBE_EVERY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probe = probe
        self._silent_seconds = silent_seconds
        self._grace_seconds = grace_seconds
        self._every_seconds = every_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self.restart()

    def restart(self) -> None:
        """Begin anew, with a process that was started just now."""
        with self._lock:
            self._quiet_since = self._clock()
            self._unanswered = 0
            self._has_answered = False

    def watch(self) -> None:
        """Ask until :meth:`stop`, from a thread of its own."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def ask(self) -> None:
        answered = self._probe()
        with self._lock:
            if answered:
                self._quiet_since = self._clock()
                self._unanswered = 0
                self._has_answered = True
            else:
                self._unanswered += 1

    def silence(self) -> float:
        """For how many seconds the process has been silent, if that is too long; else 0."""
        with self._lock:
            quiet = self._clock() - self._quiet_since
            allowed = self._silent_seconds if self._has_answered else max(self._silent_seconds, self._grace_seconds)
            return quiet if quiet >= allowed and self._unanswered >= LEAST_PROBES else 0.0

    def _run(self) -> None:
        while not self._stopped.wait(self._every_seconds):
            self.ask()


def ask_status(
    host: str, port: int, path: str, headers: Mapping[str, str], timeout_seconds: float = PROBE_TIMEOUT_SECONDS
) -> int | None:
    """The status of the web server's answer; None when it does not answer."""
    link = http.client.HTTPConnection(host, port, timeout=timeout_seconds)
    try:
        link.request("GET", path, headers=dict(headers))
        response = link.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        link.close()
    return response.status
