"""Run functions on untrusted files in separate processes with limits.

:func:`run` runs one function on one file, in a fork of a template process.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from retrieval.documents.sandbox.confinement import JobLimits as JobLimits
from retrieval.documents.sandbox.confinement import find_missing_guards, list_missing_guards
from retrieval.documents.sandbox.template import LARGEST_MESSAGE, OUT_OF_MEMORY, JobExit, SandboxJob

logger = logging.getLogger(__name__)

Source = bytes | Path
"""A file's bytes or path."""
StillWanted = Callable[[float], bool]

_TICK_SECONDS = 0.1
_PIECE_BYTES = 1 << 20
_LARGEST_HEAD_BYTES = 64 << 20
_LARGEST_STATUS_BYTES = 4096
# Seconds to wait for the template process to report how the job ended.
_GRACE_SECONDS = 5.0
_ROOT = Path(__file__).resolve().parents[3]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from retrieval.documents.sandbox.template import main; main(int(sys.argv[2]))"
)


class SandboxError(Exception):
    """Base class of the errors of a job in the sandbox."""


class LimitExceeded(SandboxError):
    """An error: the job exceeded a limit. ``str(error)`` is a predicate, such as "took longer than 60 s"."""

    def __init__(self, limit: str, sentence: str) -> None:
        super().__init__(sentence)
        self.limit = limit


class JobCrashed(SandboxError):
    """An error: the job's process ended without a readable result."""


class JobFailed(SandboxError):
    """An error: the job raised an exception of the class ``kind``. The message is untrusted text."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class JobCancelled(SandboxError):
    """An error: the job was killed because its caller no longer needs the result."""


class SandboxUnavailable(SandboxError):
    """An error: this machine could not start a process for the job."""


@dataclass(slots=True)
class SandboxState:
    missing_guards: tuple[str, ...] = ()
    """GUARDS that failed when they were tried, or in a job since then."""
    templates_started: int = 0
    failure: str = ""
    """Why the last start of a process failed; empty after a success."""


class TemplateProcess:
    """The process from which the processes of jobs are forked. Threads share it; a forked process starts its own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self.state = SandboxState()
        self.requires_guards = False

    def send(self, message: bytes, descriptors: Sequence[int]) -> None:
        """Send a job's message and file descriptors to the template process. Raises: SandboxUnavailable."""
        with self._lock:
            try:
                socket.send_fds(self._start(), [message], descriptors)
            except OSError as error:
                self.state.failure = str(error)
                self.end()
                raise SandboxUnavailable(f"The process that reads files could not be started: {error}") from error

    def _start(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        if self._process is not None:
            logger.warning("The process that reads files ended (%s); it is started anew.", self._process.returncode)
        self.end()
        if not self.state.templates_started:
            self.state.missing_guards = find_missing_guards()
        own_end, template_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with template_end:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-X", "utf8", "-c", _START, str(_ROOT), str(template_end.fileno())],
                    # This process's environment contains passwords and keys, so it is not passed on.
                    env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[template_end.fileno()],
                    start_new_session=True,
                )
            except OSError:
                own_end.close()
                raise
        self._control = own_end
        self.state.templates_started += 1
        self.state.failure = ""
        return own_end

    def end(self) -> None:
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                with contextlib.suppress(OSError):
                    self._process.kill()
                self._process.wait()
            self._control = self._process = None

    def close_inherited_socket(self) -> None:
        """Close this fork's copy of the parent's socket.

        An open copy would keep the parent's template process alive after the parent has ended.
        """
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            # The template process is no child of this process, so waiting for it would fail.
            self._process.returncode = 0
        self._lock = threading.RLock()
        self._control = self._process = None
        self.state = SandboxState()


_template = TemplateProcess()
os.register_at_fork(after_in_child=_template.close_inherited_socket)
atexit.register(_template.end)


def set_guards_required(is_required: bool) -> None:
    """Make :func:`run` refuse all jobs in this process and its forks if a guard does not work."""
    _template.requires_guards = is_required


def read_sandbox_state() -> SandboxState:
    """Return which guards of the sandbox work."""
    if not _template.state.templates_started:
        _template.state.missing_guards = find_missing_guards()
    return _template.state


def run(
    target: str,
    source: Source,
    arguments: Mapping[str, object],
    limits: JobLimits,
    *,
    preload: Sequence[str] = (),
    still_wanted: StillWanted = lambda _elapsed: True,
) -> tuple[Any, bytes]:
    """Run the function ``target`` ("package.module:function") on a file, and return its untrusted result.

    The function gets the open file and ``arguments``, and returns a JSON-serialisable value and bytes. It runs in its
    own process, within ``limits``, without network or database. ``still_wanted`` gets the elapsed seconds about ten
    times a second; False kills the process.

    Raises: OSError if the file is gone; LimitExceeded, JobCrashed, JobFailed, JobCancelled; SandboxUnavailable.
    """
    job: SandboxJob = {
        "target": target,
        "arguments": dict(arguments),
        "limits": asdict(limits),
        "preload": list(preload),
        "requires_guards": _template.requires_guards,
    }
    message = json.dumps(job).encode()
    if len(message) > LARGEST_MESSAGE:
        raise ValueError(f"The arguments of a job take {len(message)} bytes; {LARGEST_MESSAGE} can be sent.")
    with _open_source(source) as data:
        return _run_job(message, data, limits, still_wanted)


def _run_job(message: bytes, data: int, limits: JobLimits, still_wanted: StillWanted) -> tuple[Any, bytes]:
    for is_last in (False, True):
        with contextlib.ExitStack() as our_ends, contextlib.ExitStack() as job_ends:
            result, result_end = _open_job_pipe(our_ends, job_ends)
            status, status_end = _open_job_pipe(our_ends, job_ends)
            # When the pipes are closed here, the template process kills a running job.
            try:
                _template.send(message, [data, result_end, status_end])
                job_ends.close()
                frame, ended = _read_result(result, status, limits, still_wanted)
            except SandboxUnavailable:
                # The template process was killed or could start no process, so the job is sent again.
                if is_last:
                    raise
                continue
            return _unpack_job_result(frame, ended, limits)
    raise AssertionError("unreachable")


def _open_job_pipe(our_ends: contextlib.ExitStack, job_ends: contextlib.ExitStack) -> tuple[int, int]:
    readable, writable = os.pipe()
    our_ends.callback(os.close, readable)
    job_ends.callback(os.close, writable)
    os.set_blocking(readable, False)
    return readable, writable


@contextlib.contextmanager
def _open_source(source: Source) -> Iterator[int]:
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield file.fileno()
        return
    is_linux = hasattr(os, "memfd_create")
    with os.fdopen(os.memfd_create("document"), "w+b", 0) if is_linux else tempfile.TemporaryFile(buffering=0) as file:
        file.write(source)
        file.seek(0)
        yield file.fileno()


def _read_result(result: int, status: int, limits: JobLimits, still_wanted: StillWanted) -> tuple[bytes, JobExit]:
    started = time.monotonic()
    poll = select.poll()
    pieces = {result: io.BytesIO(), status: io.BytesIO()}
    bounds = {result: limits.output_bytes, status: _LARGEST_STATUS_BYTES}
    for descriptor in pieces:
        poll.register(descriptor, select.POLLIN)
    unfinished = set(pieces)
    while unfinished:
        elapsed = time.monotonic() - started
        if elapsed > limits.seconds + (0 if result in unfinished else _GRACE_SECONDS):
            raise _make_time_error(limits)
        if not still_wanted(elapsed):
            raise JobCancelled("Nobody waits for it any more.")
        for descriptor, _ in poll.poll(1000 * min(_TICK_SECONDS, max(0.001, limits.seconds - elapsed))):
            with contextlib.suppress(BlockingIOError):
                if piece := os.read(descriptor, _PIECE_BYTES):
                    pieces[descriptor].write(piece)
                    if pieces[descriptor].tell() > bounds[descriptor]:
                        raise LimitExceeded("output", f"gave more than {limits.output_bytes // 10**6:,} MB of text")
                else:
                    poll.unregister(descriptor)
                    unfinished.discard(descriptor)
    try:
        ended: JobExit = json.loads(pieces[status].getvalue())
    except ValueError:
        raise SandboxUnavailable("The process that reads files ended.") from None
    if "unavailable" in ended:
        raise SandboxUnavailable(f"No process could be started: {ended['unavailable']}")
    return pieces[result].getvalue(), ended


def _make_time_error(limits: JobLimits) -> LimitExceeded:
    return LimitExceeded("time", f"took longer than {limits.seconds:g} s")


def _unpack_job_result(frame: bytes, job_exit: JobExit, limits: JobLimits) -> tuple[Any, bytes]:
    code = job_exit["code"]
    memory = LimitExceeded("memory", f"needed more than {limits.memory_mib:,} MiB of memory")
    if frame == OUT_OF_MEMORY:
        raise memory
    if code == -signal.SIGXCPU and limits.processor_seconds is not None:
        raise LimitExceeded("time", f"needed more than {limits.processor_seconds:g} s of processor time")
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and job_exit["seconds"] >= limits.seconds):
        raise _make_time_error(limits)
    if code == -signal.SIGKILL:
        # The sandbox sent no SIGKILL, so the kernel killed the process for lack of memory.
        raise memory
    if code != 0:
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        raise JobCrashed(f"broke off ({how}), or needed more than {limits.memory_mib:,} MiB of memory")
    size = int.from_bytes(frame[:8], "big")
    if not 0 < size <= min(_LARGEST_HEAD_BYTES, len(frame) - 8):
        raise JobCrashed("gave a result without form")
    try:
        head = json.loads(frame[8 : 8 + size])
        _record_missing_guards(head["guards"])
        if "refused" in head:
            missing = ", ".join(_template.state.missing_guards)
            raise SandboxUnavailable(f"No file is read without all guards of the sandbox; missing here: {missing}.")
        if "error" in head:
            raise JobFailed(str(head["error"])[:100], str(head["message"])[:2000])
        return head["value"], frame[8 + size :]
    except SandboxError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise JobCrashed("gave a result that cannot be read") from error


def _record_missing_guards(working_guards: Any) -> None:
    state = _template.state
    if missing := set(list_missing_guards(working_guards)) - set(state.missing_guards):
        state.missing_guards = (*state.missing_guards, *sorted(missing))
        logger.warning("DEGRADED: a job of the sandbox ran without these guards: %s.", ", ".join(sorted(missing)))
