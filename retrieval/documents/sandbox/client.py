"""Runs jobs in processes of their own, forked from a template that is started when this process first needs one."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import logging
import os
import select
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from retrieval.documents.sandbox.confinement import (
    JobCancelled,
    JobCrashed,
    JobFailed,
    JobLimits,
    LimitExceeded,
    SandboxError,
    SandboxUnavailable,
    missing_guards,
    without_guards,
)
from retrieval.documents.sandbox.template import LARGEST_MESSAGE, OUT_OF_MEMORY
from retrieval.documents.sandbox.template_process import SandboxState, TemplateProcess

logger = logging.getLogger(__name__)

Source = bytes | Path
"""A file's bytes, or where it lies."""
StillWanted = Callable[[float], bool]

_TICK_SECONDS = 0.1
_PIECE_BYTES = 1 << 20
_LARGEST_HEAD_BYTES = 64 << 20
_LARGEST_STATUS_BYTES = 4096
# How long the template may take to say how a job ended, after the job's own time is over.
_GRACE_SECONDS = 5.0


_template = TemplateProcess()
os.register_at_fork(after_in_child=_template.forget)
atexit.register(_template.end)


def require_guards(is_required: bool) -> None:
    """Whether jobs of this process and its forks are refused where a guard is missing."""
    _template.requires_guards = is_required


def state() -> SandboxState:
    """The state of this process's sandbox. The first call in a process may take some tenths of a second."""
    if not _template.state.templates_started:
        _template.state.missing_guards = missing_guards()
    return _template.state


def run(
    target: str,
    source: Source,
    arguments: Mapping[str, Any],
    limits: JobLimits,
    *,
    preload: Sequence[str] = (),
    still_wanted: StillWanted = lambda _elapsed: True,
) -> tuple[Any, bytes]:
    """What ``target`` ("package.module:function") returns for the open file and ``arguments``, run in a process of its
    own that has no network, no database and no more than ``limits``.

    The function returns a value that JSON can hold, and bytes. ``preload`` names modules that the template imports, so
    that the next job finds them there. ``still_wanted`` is asked about ten times a second, with the seconds since the
    start; when it says no, the process is killed.

    Nothing that comes back is to be trusted. Raises: OSError when the file is gone, LimitExceeded, JobCrashed,
    JobFailed, JobCancelled, SandboxUnavailable (also where a guard is missing that :func:`require_guards` asks for).
    """
    job = {"target": target, "arguments": dict(arguments), "limits": asdict(limits), "preload": list(preload)}
    message = json.dumps({**job, "requires_guards": _template.requires_guards}).encode()
    if len(message) > LARGEST_MESSAGE:
        raise ValueError(f"The arguments of a job take {len(message)} bytes; {LARGEST_MESSAGE} can be sent.")
    with _open(source) as data:
        return _run(message, data, limits, still_wanted)


def _run(message: bytes, data: int, limits: JobLimits, still_wanted: StillWanted) -> tuple[Any, bytes]:
    for is_last in (False, True):
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            result, result_end = _open_pipe(ours, theirs)
            status, status_end = _open_pipe(ours, theirs)
            # Leaving this block closes our ends: whatever still runs is then killed.
            try:
                _template.send(message, [data, result_end, status_end])
                theirs.close()
                frame, ended = _collect(result, status, limits, still_wanted)
            except SandboxUnavailable:
                # The template was killed, or the machine is out of processes: no fault of this file's.
                if is_last:
                    raise
                continue
            return _unpack(frame, ended, limits)
    raise AssertionError("unreachable")


def _open_pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    readable, writable = os.pipe()
    ours.callback(os.close, readable)
    theirs.callback(os.close, writable)
    os.set_blocking(readable, False)
    return readable, writable


@contextlib.contextmanager
def _open(source: Source) -> Iterator[int]:
    """A descriptor of the file, at its beginning."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            yield file.fileno()
        return
    with _open_in_memory() as file:
        file.write(source)
        file.seek(0)
        yield file.fileno()


def _open_in_memory() -> Any:
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("document"), "w+b", buffering=0)
    return tempfile.TemporaryFile("w+b", buffering=0)


def _collect(result: int, status: int, limits: JobLimits, still_wanted: StillWanted) -> tuple[bytes, dict[str, Any]]:
    """What the job wrote, and how it ended."""
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
            raise _time_exceeded(limits)
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
        ended = json.loads(pieces[status].getvalue())
    except ValueError:
        raise SandboxUnavailable("The process that reads files ended.") from None
    if "unavailable" in ended:
        raise SandboxUnavailable(f"No process could be started: {ended['unavailable']}")
    return pieces[result].getvalue(), ended


def _time_exceeded(limits: JobLimits) -> LimitExceeded:
    return LimitExceeded("time", f"took longer than {limits.seconds:g} s")


def _unpack(frame: bytes, ended: dict[str, Any], limits: JobLimits) -> tuple[Any, bytes]:
    code = ended["code"]
    memory = LimitExceeded("memory", f"needed more than {limits.memory_mib:,} MiB of memory")
    if frame == OUT_OF_MEMORY:
        raise memory
    if code == -signal.SIGXCPU and limits.processor_seconds is not None:
        raise LimitExceeded("time", f"needed more than {limits.processor_seconds:g} s of processor time")
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and ended["seconds"] >= limits.seconds):
        raise _time_exceeded(limits)
    if code == -signal.SIGKILL:
        # Nobody here killed it: the machine ran out of memory.
        raise memory
    if code != 0:
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        raise JobCrashed(f"broke off ({how}), or needed more than {limits.memory_mib:,} MiB of memory")
    size = int.from_bytes(frame[:8], "big")
    if not 0 < size <= min(_LARGEST_HEAD_BYTES, len(frame) - 8):
        raise JobCrashed("gave a result without form")
    try:
        head = json.loads(frame[8 : 8 + size])
        _note_guards(head["guards"])
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


def _note_guards(in_force: Any) -> None:
    state = _template.state
    if missing := set(without_guards(in_force)) - set(state.missing_guards):
        state.missing_guards = (*state.missing_guards, *sorted(missing))
        logger.warning("DEGRADED: a job of the sandbox ran without these guards: %s.", ", ".join(sorted(missing)))
