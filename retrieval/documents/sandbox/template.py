"""The template process, from which jobs are forked. It imports the parsers, and never reads a file itself.

Each job is a message over a socket, with three file descriptors:

- ``data`` is the file to read.
- ``result`` is a pipe for the job's result.
- ``status`` is a pipe in which the template reports how the job ended. If the caller closes it, the job is killed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any, TypedDict

from retrieval.documents.sandbox.confinement import JobLimits, confine_process, list_missing_guards

LARGEST_MESSAGE = 128 * 1024
OUT_OF_MEMORY = b"\0\0\0\0\0\0\0\0"
"""A frame with an empty head, which no result has."""
_DATA, _RESULT = 3, 4


class SandboxJob(TypedDict):
    """A job for the template process. ``target`` is "package.module:function", ``limits`` the fields of JobLimits."""

    target: str
    arguments: dict[str, object]
    limits: dict[str, Any]
    preload: list[str]
    requires_guards: bool


class JobExit(TypedDict, total=False):
    """How a job's process ended: exit code and processor time, or why no process was started."""

    code: int
    seconds: float
    unavailable: str


class ResultHeader(TypedDict, total=False):
    """The result of a job, apart from the bytes that follow.

    ``error`` is the name of the exception's class. ``guards`` are the protections of the sandbox that work on this
    machine. If ``refused``, the job did not run, because a required guard does not work.
    """

    value: object
    error: str
    message: str
    refused: bool
    guards: list[str]


def main(descriptor: int) -> None:
    """Run jobs until the other end of the socket ``descriptor`` is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.dont_write_bytecode = True
    with socket.socket(fileno=descriptor) as control:
        _SandboxJobServer(control).serve()


class _SandboxJobServer:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._poll = select.poll()
        self._jobs: dict[int, int] = {}
        """Status descriptor -> process id."""

    def serve(self) -> None:
        readable, writable = os.pipe()
        os.set_blocking(writable, False)
        # Python writes a signal to the wakeup pipe only if the signal has a handler.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        self._poll.register(readable, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        try:
            while True:
                # Handling an event may invalidate others, so only one is taken at a time.
                descriptor, _ = self._poll.poll()[0]
                if descriptor == readable:
                    os.read(readable, 4096)
                    self._report_ended_jobs()
                elif descriptor == self._control.fileno():
                    if not self._start_job():
                        return
                else:
                    self._poll.unregister(descriptor)
                    os.kill(self._jobs[descriptor], signal.SIGKILL)
        finally:
            for process in self._jobs.values():
                os.kill(process, signal.SIGKILL)

    def _start_job(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, LARGEST_MESSAGE, 3)
        if not message:
            return False
        data, result, status = descriptors
        job: SandboxJob = json.loads(message)
        for name in (*job["preload"], job["target"].partition(":")[0]):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        gc.freeze()
        own = os.getpid()
        try:
            process = os.fork()
        except OSError as error:
            _report_status(status, {"unavailable": str(error)})
        else:
            if process == 0:
                _run_job(job, data, result, own)
            self._jobs[status] = process
            self._poll.register(status, 0)
        os.close(data)
        os.close(result)
        return True

    def _report_ended_jobs(self) -> None:
        while self._jobs:
            process, status, used = os.wait4(-1, os.WNOHANG)
            if not process:
                return
            for descriptor, known in list(self._jobs.items()):
                if known == process:
                    del self._jobs[descriptor]
                    with contextlib.suppress(KeyError):
                        self._poll.unregister(descriptor)
                    seconds = used.ru_utime + used.ru_stime
                    _report_status(descriptor, {"code": os.waitstatus_to_exitcode(status), "seconds": seconds})


def _report_status(descriptor: int, status: JobExit) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, json.dumps(status).encode())
    os.close(descriptor)


# The functions below run in the job's process.


def _run_job(job: SandboxJob, data: int, result: int, parent: int) -> None:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _close_other_descriptors(data, result)
        guards = confine_process(JobLimits(**job["limits"]), parent)
        try:
            head, body = _call_job_function(job, guards)
        except MemoryError:
            # There may be no memory for a message.
            os.write(_RESULT, OUT_OF_MEMORY)
        else:
            for part in (len(head).to_bytes(8, "big"), head, body):
                _write_result(part)
        code = 0
    finally:
        os._exit(code)


def _close_other_descriptors(data: int, result: int) -> None:
    # Both files get numbers above _RESULT, because the first `dup2` could overwrite the other file.
    data, result = os.dup(data), os.dup(result)
    while data <= _RESULT:
        data = os.dup(data)
    while result <= _RESULT:
        result = os.dup(result)
    os.dup2(data, _DATA)
    os.dup2(result, _RESULT)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.closerange(_RESULT + 1, 2**31 - 1)


def _call_job_function(job: SandboxJob, guards: list[str]) -> tuple[bytes, bytes]:
    module, _, name = job["target"].partition(":")
    body = b""
    if job["requires_guards"] and list_missing_guards(guards):
        return _encode_result_header({"refused": True, "guards": guards}), body
    try:
        function = getattr(importlib.import_module(module), name)
        with open(_DATA, "rb") as file:
            value, body = function(file, **job["arguments"])
        head: ResultHeader = {"value": value, "guards": guards}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - parsers raise anything; whoever asked decides what it means
        head = {"error": type(error).__name__, "message": str(error)[:2000], "guards": guards}
    return _encode_result_header(head), body


def _encode_result_header(head: ResultHeader) -> bytes:
    return json.dumps(head).encode()


def _write_result(part: bytes) -> None:
    view = memoryview(part)
    while view:
        view = view[os.write(_RESULT, view) :]
