"""Runs the processes of the Procfile under one foreground command, and starts again what dies or hangs."""

from __future__ import annotations

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

from ragsite import memory
from ragsite.watchdog import Watchdog

STOP_SECONDS = 10
# A process that lived this long had started well: its next death is a new event.
HEALTHY_SECONDS = 30
LONGEST_PAUSE_SECONDS = 30
TRACEBACK_SECONDS = 0.5
PR_SET_PDEATHSIG = 1
RESTARTS_FILE = "restarts.json"


@dataclass(slots=True)
class Process:
    """One line of the Procfile."""

    name: str
    command: list[str]
    popen: subprocess.Popen[bytes] | None = None
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
        self, processes: list[Process], environment: Mapping[str, str], cwd: Path, say: Callable[[str], None]
    ) -> None:
        self.processes = processes
        self._environment = dict(environment)
        self._cwd = cwd
        self._say = say
        self._stopping = False

    def run(self, on_tick: Callable[[], None]) -> None:
        """Start everything and stay until SIGINT, SIGTERM or :meth:`stop`; ``on_tick`` is called twice a second."""
        handlers = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        for process in self.processes:
            if process.watchdog is not None:
                process.watchdog.watch()
        try:
            while not self._stopping:
                for process in self.processes:
                    self._tend(process)
                on_tick()
                time.sleep(0.5)
        finally:
            for process in self.processes:
                if process.watchdog is not None:
                    process.watchdog.stop()
            self._stop_all()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def stop(self) -> None:
        self._stopping = True

    def _on_signal(self, number: int, _frame: object) -> None:
        self._stopping = True

    def _tend(self, process: Process) -> None:
        now = time.monotonic()
        if process.popen is not None:
            status = process.popen.poll()
            if status is None:
                self._kill_if_silent(process)
                return
            process.popen = None
            process.restarts["hung" if process.was_silent else "died"] += 1
            process.was_silent = False
            process.failures = 0 if now - process.started > HEALTHY_SECONDS else process.failures + 1
            pause = min(LONGEST_PAUSE_SECONDS, 2**process.failures) if process.failures else 0
            process.start_at = now + pause
            self._say(f"{process.name} ended with status {status}; starting it again in {pause} s.")
        if now >= process.start_at:
            process.started = now
            if process.watchdog is not None:
                process.watchdog.restart()
            process.popen = subprocess.Popen(
                process.command,
                cwd=self._cwd,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                # A session of its own: Ctrl-C reaches this process alone, which then stops the others in order.
                start_new_session=True,
                preexec_fn=partial(_in_child, os.getpid()) if sys.platform == "linux" else None,
            )

    def _kill_if_silent(self, process: Process) -> None:
        silence = process.watchdog.silence() if process.watchdog is not None else 0.0
        if not silence or process.popen is None or process.was_silent:
            return
        process.was_silent = True
        self._say(f"{process.name} has not answered for {silence:.0f} s; killing it. What it was busy with follows.")
        # The web server writes where each of its threads is. It can do so while Python itself cannot go on.
        _signal_group(process.popen, signal.SIGUSR1, only_leader=True)
        time.sleep(TRACEBACK_SECONDS)
        _signal_group(process.popen, signal.SIGKILL)

    def _stop_all(self) -> None:
        running = [process.popen for process in self.processes if process.popen is not None]
        for popen in running:
            _signal_group(popen, signal.SIGTERM, only_leader=True)
        deadline = time.monotonic() + STOP_SECONDS
        for popen in running:
            try:
                popen.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal_group(popen, signal.SIGKILL)
                popen.wait()


class RestartsFile:
    """How often each process was started again since the supervisor was, for `/metrics` of the web server."""

    def __init__(self, data_dir: Path, processes: list[Process]) -> None:
        self._path = data_dir / RESTARTS_FILE
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
    try:
        found: dict[str, dict[str, int]] = json.loads((data_dir / RESTARTS_FILE).read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return found


def _signal_group(popen: subprocess.Popen[bytes], number: signal.Signals, *, only_leader: bool = False) -> None:
    try:
        if only_leader:
            popen.send_signal(number)
        else:
            os.killpg(popen.pid, number)
    except ProcessLookupError:
        return


def _in_child(parent: int) -> None:
    """Have the kernel kill this child when its parent is killed, so that no stray process keeps the port or a task.

    Not ask it to end: a worker then waits for its tasks. What it was at is taken up again as after any kill.
    """
    memory.go_before_others(memory.SITE_SCORE)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
