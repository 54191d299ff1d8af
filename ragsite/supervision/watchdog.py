"""Whether a process still answers, asked again and again without waiting for it."""

from __future__ import annotations

import contextlib
import errno
import http.client
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.conf import settings

SILENT_SECONDS = 15.0
# One probe that is lost tells of a busy machine. This many in a row, each with its own time, tell of a process.
LEAST_PROBES = 3
PROBE_EVERY_SECONDS = 5.0
# One that was lost is followed sooner.
PROBE_AGAIN_SECONDS = 2.0
PROBE_TIMEOUT_SECONDS = 4.0
# A process that has just been started may read its models before it answers.
GRACE_SECONDS = 120.0

_UNDER_WAY = (0, errno.EINPROGRESS, errno.EAGAIN, errno.ENOTCONN)


class Probe(Protocol):
    def begin(self) -> None:
        """Ask. What was asked before does not count any more."""

    def answered(self) -> bool | None:
        """Whether an answer came to what was asked; None while it may still come."""


@dataclass(slots=True)
class HttpProbe:
    """One request for /healthz, of the web server that listens at ``address``."""

    family: int
    address: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = PROBE_TIMEOUT_SECONDS
    _line: socket.socket | None = None
    _is_sent: bool = False
    _until: float = 0.0

    def begin(self) -> None:
        self._hang_up()
        self._line = socket.socket(self.family, socket.SOCK_STREAM)
        self._line.setblocking(False)
        self._is_sent, self._until = False, time.monotonic() + self.timeout_seconds
        if self._line.connect_ex(self.address) not in _UNDER_WAY:
            self._hang_up()
            return
        with contextlib.suppress(OSError):  # sent later, if at all
            self._send()

    def answered(self) -> bool | None:
        if self._line is None:
            return False
        try:
            self._send()
            has_answered = bool(self._line.recv(64))
        except OSError as error:
            if error.errno in _UNDER_WAY and time.monotonic() < self._until:
                return None
            has_answered = False
        self._hang_up()
        return has_answered

    def _send(self) -> None:
        if self._line is not None and not self._is_sent:
            self._line.send(request_text("/healthz", self.headers))
            self._is_sent = True

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


def request_text(path: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()


class Watchdog:
    """Says when ``probe`` has had no answer for ``silent_seconds``; nothing before the first answer, within the grace.

    A machine that is merely busy answers late, and an answer at all begins the count anew.
    """

    def __init__(
        self,
        probe: Probe,
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
        self.restart()

    def restart(self) -> None:
        """Begin anew, with a process that was started just now."""
        self._quiet_since = self._clock()
        self._unanswered = 0
        self._has_answered = False
        self._is_asking = False
        self._ask_at = self._quiet_since

    def look(self) -> None:
        """Ask when it is time to, and take what has come. To be called a few times a second."""
        if self._is_asking:
            answered = self._probe.answered()
            if answered is None:
                return
            self._is_asking = False
            if answered:
                self._quiet_since = self._clock()
                self._unanswered = 0
                self._has_answered = True
            else:
                self._unanswered += 1
                self._ask_at = min(self._ask_at, self._clock() + PROBE_AGAIN_SECONDS)
        elif self._clock() >= self._ask_at:
            self._ask_at = self._clock() + self._every_seconds
            self._is_asking = True
            self._probe.begin()

    def silence(self) -> float:
        """For how many seconds the process has been silent, if that is too long; else 0."""
        quiet = self._clock() - self._quiet_since
        allowed = self._silent_seconds if self._has_answered else max(self._silent_seconds, self._grace_seconds)
        return quiet if quiet >= allowed and self._unanswered >= LEAST_PROBES else 0.0


def headers_of_a_proxy() -> dict[str, str]:
    """Those of a proxy in front of the site: a name that it answers to, and HTTPS where it insists."""
    names = [name.lstrip(".") for name in settings.ALLOWED_HOSTS if name != "*"]
    return {"Host": names[0] if names else "localhost", "X-Forwarded-Proto": "https"}


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
