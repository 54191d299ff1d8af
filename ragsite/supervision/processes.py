"""Runs processes under one that stays in the foreground, and starts again what dies or hangs."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shlex
import signal
import string
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from ragsite.supervision import memory
from ragsite.supervision.forked import Fork
from ragsite.supervision.watchdog import Watchdog

STOP_SECONDS = 10
# A process that lived this long had started well: its next death is a new event.
HEALTHY_SECONDS = 30
LONGEST_PAUSE_SECONDS = 30
TRACEBACK_SECONDS = 0.5
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
RESTARTS_FILE = "restarts{of}.json"


class Child(Protocol):
    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: signal.Signals) -> None: ...


@dataclass(slots=True)
class Process:
    """What is to run: a command, or ``work`` in a fork of the supervisor, which ends when it returns.

    ``on_end`` is called when it has ended by itself.
    """

    name: str
    command: list[str] = field(default_factory=list)
    work: Callable[[], None] | None = None
    on_end: Callable[[], None] = lambda: None
    child: Child | None = None
    started: float = 0.0
    failures: int = 0
    start_at: float = field(default=0.0)
    # Where there is one, a process that it finds silent is killed.
    watchdog: Watchdog | None = None
    # How often it was started again, by what had become of it.
    restarts: Counter[str] = field(default_factory=Counter)
    was_silent: bool = False


def parse_procfile(text: str, environment: Mapping[str, str]) -> list[Process]:
    """The processes in order, ``$NAME`` in their commands replaced from the environment.

    Raises: ValueError for a line that is not ``name: command``, or names a variable that is not set.
    """
    processes = []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, colon, command = line.partition(":")
        if not colon or not command.strip():
            raise ValueError(f"Not a line of a Procfile: {line!r}")
        try:
            words = shlex.split(string.Template(command).substitute(environment))
        except KeyError as error:
            raise ValueError(f"The Procfile asks for the variable {error.args[0]}, which is not set.") from error
        processes.append(Process(name.strip(), words))
    return processes


class Supervisor:
    """Keeps ``processes`` running until told to stop."""

    def __init__(
        self,
        processes: list[Process],
        environment: Mapping[str, str],
        cwd: Path,
        say: Callable[[str], None],
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self.processes = processes
        self._stop_seconds = stop_seconds
        self._environment = dict(environment)
        self._cwd = cwd
        self._say = say
        self._stopping = False

    def run(self, on_tick: Callable[[], None]) -> None:
        """Start everything and stay until SIGINT, SIGTERM or :meth:`stop`; ``on_tick`` is called twice a second."""
        handlers = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while not self._stopping:
                for process in self.processes:
                    self._tend(process)
                on_tick()
                time.sleep(0.5)
        finally:
            self._stop_all()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        self._stopping = True

    def _on_signal(self, number: int, _frame: object) -> None:
        self._stopping = True

    def _tend(self, process: Process) -> None:
        now = time.monotonic()
        if process.child is not None:
            status = process.child.poll()
            if status is None:
                self._kill_if_silent(process)
                return
            process.child = None
            process.on_end()
            process.restarts["hung" if process.was_silent else "died"] += 1
            process.was_silent = False
            self._start_later(process, now, f"ended with status {status}")
        if now >= process.start_at:
            process.started = now
            if process.watchdog is not None:
                process.watchdog.restart()
            try:
                process.child = self._start(process)
            except OSError as error:
                process.restarts["died"] += 1
                self._start_later(process, now, f"could not be started: {error}")

    def _start_later(self, process: Process, now: float, what_happened: str) -> None:
        process.failures = 0 if now - process.started > HEALTHY_SECONDS else process.failures + 1
        pause = min(LONGEST_PAUSE_SECONDS, 2**process.failures) if process.failures else 0
        process.start_at = now + pause
        self._say(f"{process.name} {what_happened}; starting it again in {pause} s.")

    def _start(self, process: Process) -> Child:
        go_with_parent = partial(_in_child, os.getpid()) if sys.platform == "linux" else lambda: None
        if process.work is not None:
            return Fork(partial(_work_as, process.name, go_with_parent, process.work))
        return subprocess.Popen(
            process.command,
            cwd=self._cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            # A session of its own: Ctrl-C reaches this process alone, which then stops the others in order.
            start_new_session=True,
            preexec_fn=go_with_parent,
        )

    def _kill_if_silent(self, process: Process) -> None:
        if process.watchdog is None or process.child is None or process.was_silent:
            return
        process.watchdog.look()
        silence = process.watchdog.silence()
        if not silence:
            return
        process.was_silent = True
        self._say(f"{process.name} has not answered for {silence:.0f} s; killing it. What it was busy with follows.")
        # The web server writes where each of its threads is. It can do so while Python itself cannot go on.
        _signal_group(process.child, signal.SIGUSR1, only_leader=True)
        time.sleep(TRACEBACK_SECONDS)
        _signal_group(process.child, signal.SIGKILL)

    def _stop_all(self) -> None:
        running = [process.child for process in self.processes if process.child is not None]
        for child in running:
            _signal_group(child, signal.SIGTERM, only_leader=True)
        deadline = time.monotonic() + self._stop_seconds
        for child in running:
            try:
                child.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal_group(child, signal.SIGKILL)
                child.wait()


class RestartsFile:
    """How often each process was started again since the supervisor ``of`` them was, for `/metrics`."""

    def __init__(self, data_dir: Path, processes: list[Process], of: str = "") -> None:
        self._path = data_dir / RESTARTS_FILE.format(of=of)
        self._processes = processes
        self._written = ""
        self.keep_up()

    def keep_up(self) -> None:
        """Write it when something has changed; on a full disk, when there is room again."""
        text = json.dumps({process.name: process.restarts for process in self._processes})
        if text == self._written:
            return
        fresh = self._path.with_suffix(".new")
        try:
            fresh.write_text(text)
            fresh.replace(self._path)
        except OSError:
            return  # tried again at the next tick
        self._written = text


def restarts(data_dir: Path) -> dict[str, dict[str, int]]:
    """By process and by what had become of it; empty when no supervisor runs here."""
    found: dict[str, dict[str, int]] = {}
    for path in data_dir.glob(RESTARTS_FILE.format(of="*")):
        with contextlib.suppress(FileNotFoundError, ValueError):
            found |= json.loads(path.read_text())
    return found


def _signal_group(child: Child, number: signal.Signals, *, only_leader: bool = False) -> None:
    try:
        if only_leader:
            child.send_signal(number)
        else:
            os.killpg(child.pid, number)
    except ProcessLookupError:
        return


def _work_as(name: str, go_with_parent: Callable[[], None], work: Callable[[], None]) -> None:
    """Under a name of its own in `ps -o comm` and `top`: a fork has its parent's command line."""
    go_with_parent()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NAME, f"ragsite-{name}".encode()[:15])
    work()


def _in_child(parent: int) -> None:
    """Have the kernel kill this child when its parent is killed, so that no stray process keeps the port or a task.

    Not ask it to end: a worker then waits for its tasks. What it was at is taken up again as after any kill.
    """
    memory.go_before_others(memory.SITE_SCORE)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
