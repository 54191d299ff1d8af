"""Runs the processes of a Procfile under one that stays in the foreground, and starts again what dies.

Each is forked from the supervisor, so that what it has loaded is there already and is shared. The supervisor has no
threads and no connection to the database: those would not survive a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing
import os
import runpy
import shlex
import signal
import string
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragsite import machine

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

STOP_SECONDS = 10.0
TICK_SECONDS = 0.5
# A process that lived this long had started well: its next death is a new event.
HEALTHY_SECONDS = 30
LONGEST_PAUSE_SECONDS = 30
RESTARTS_FILE = "restarts.json"
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15


@dataclass(slots=True)
class Process:
    name: str
    command: list[str]
    child: ForkProcess | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    failures: int = 0
    restarts: int = 0


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


def supervise(
    processes: list[Process],
    environment: Mapping[str, str],
    data_dir: Path,
    say: Callable[[str], None],
    on_tick: Callable[[], None],
    stop_seconds: float = STOP_SECONDS,
) -> None:
    """Keep the processes running until SIGINT or SIGTERM; ``on_tick`` is called twice a second."""
    is_told_to_stop = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal is_told_to_stop
        is_told_to_stop = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        while not is_told_to_stop:
            for process in processes:
                if _tend(process, environment, say):
                    _write_restarts(data_dir, processes)
            on_tick()
            time.sleep(TICK_SECONDS)
    finally:
        _stop([process.child for process in processes if process.child is not None], stop_seconds)


def _tend(process: Process, environment: Mapping[str, str], say: Callable[[str], None]) -> bool:
    """Start the process if it does not run and it is time to; returns whether it has ended."""
    now = time.monotonic()
    if process.child is None:
        if now >= process.start_at:
            process.started_at = now
            arguments = (os.getpid(), process, {**os.environ, **environment})
            process.child = multiprocessing.get_context("fork").Process(target=_work, args=arguments)
            process.child.start()
        return False
    if process.child.exitcode is None:
        return False
    process.failures = 0 if now - process.started_at > HEALTHY_SECONDS else process.failures + 1
    pause = min(LONGEST_PAUSE_SECONDS, 2**process.failures) if process.failures else 0
    say(f"{process.name} ended with status {process.child.exitcode}; starting it again in {pause} s.")
    process.child, process.start_at, process.restarts = None, now + pause, process.restarts + 1
    return True


def _work(parent: int, process: Process, environment: Mapping[str, str]) -> None:
    """Be the process, as the leader of a group, which Ctrl-C does not reach: the supervisor stops all in order."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    end_with(parent, f"ragsite-{process.name}")
    machine.go_before_others(machine.SITE_SCORE)
    os.environ.update(environment)
    if process.command[:2] != ["python", "-m"]:
        os.execvp(process.command[0], process.command)  # noqa: S606
    sys.argv = process.command[2:]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a text file
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def end_with(parent: int, name: str) -> None:
    """Have the kernel kill this process when its ``parent`` is killed, so that no stray one keeps the port or a task,
    and show it under a name of its own: a fork has its parent's command line. Does nothing but on Linux."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_NAME, name.encode()[:15])
        # Not asked to end: a worker then waits for its tasks. What it was at is taken up again as after any kill.
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _stop(children: list[ForkProcess], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for child in children:
        child.terminate()
    for child in children:
        # Not by `join` with a timeout: it takes a child that has become another program for one that has ended.
        while child.exitcode is None and time.monotonic() < deadline:
            time.sleep(TICK_SECONDS / 10)
        if child.exitcode is None and child.pid is not None:
            os.killpg(child.pid, signal.SIGKILL)
            child.join()


def _write_restarts(data_dir: Path, processes: list[Process]) -> None:
    # On a full disk the next death is written with this one.
    with contextlib.suppress(OSError):
        counts = json.dumps({process.name: process.restarts for process in processes})
        (data_dir / RESTARTS_FILE).write_text(counts)


def restarts(data_dir: Path) -> dict[str, int]:
    """How often `serve` started each process again since it was started; empty where it does not run."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        found: dict[str, int] = json.loads((data_dir / RESTARTS_FILE).read_text())
        return found
    return {}
