"""The process from which those of the jobs are forked: started when it is first needed, and again when it has ended."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval.documents.sandbox.confinement import SandboxUnavailable, missing_guards

logger = logging.getLogger(__name__)

_ROOT = Path(__file__).resolve().parents[3]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from retrieval.documents.sandbox.template import main; main(int(sys.argv[2]))"
)


@dataclass(slots=True)
class SandboxState:
    """What this process knows of its sandbox, for health checks and metrics."""

    missing_guards: tuple[str, ...] = ()
    """Those of GUARDS that did not come into force, when they were tried or in a job since then."""
    templates_started: int = 0
    failure: str = ""
    """Why the last process could not be started, until one could be."""


class TemplateProcess:
    """The template process of this process. Threads may share it; a fork of this process has its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self.state = SandboxState()
        self.requires_guards = False

    def send(self, message: bytes, descriptors: Sequence[int]) -> None:
        """Send the message with the descriptors. Raises: SandboxUnavailable."""
        with self._lock:
            try:
                socket.send_fds(self._start(), [message], descriptors)
            except OSError as error:
                self.state.failure = str(error)
                self._end()
                raise SandboxUnavailable(f"The process that reads files could not be started: {error}") from error

    def _start(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        if self._process is not None:
            logger.warning("The process that reads files ended (%s); it is started anew.", self._process.returncode)
        self._end()
        if not self.state.templates_started:
            self.state.missing_guards = missing_guards()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-X", "utf8", "-c", _START, str(_ROOT), str(theirs.fileno())],
                    # Nothing of this process's environment: it holds passwords and keys.
                    env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
        self._control = ours
        self.state.templates_started += 1
        self.state.failure = ""
        return ours

    def _end(self) -> None:
        """Has the template end, and waits for it: its end of the socket reads that there is nobody any more."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._process.kill()
            self._process.wait()
        self._control = self._process = None

    def end(self) -> None:
        with self._lock:
            self._end()

    def forget(self) -> None:
        """In a fork of this process: the template is its parent's. Its socket is closed, or it would outlive that."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.returncode = 0  # not a child of this process: nothing to wait for
        self._lock = threading.Lock()
        self._control = self._process = None
        self.state = SandboxState()
