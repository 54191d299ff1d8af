"""Run the processes of a Procfile, and restart each one that dies.

They are forks, which share memory, so this process has no threads and no database connections.
"""

from __future__ import annotations

import contextlib
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
from multiprocessing.process import BaseProcess
from pathlib import Path

from ragsite.processes import machine

STOP_SECONDS = 10.0
TICK_SECONDS = 0.5
# A process that ran for at least this time is restarted at once, and its earlier failures do not count.
HEALTHY_SECONDS = 30
LONGEST_PAUSE_SECONDS = 30
RESTARTS_FILE = "restarts.json"


@dataclass(slots=True)
class Process:
    name: str
    command: list[str]
    child: BaseProcess | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    failures: int = 0
    restarts: int = 0


def parse_procfile(text: str, environment: Mapping[str, str]) -> list[Process]:
    """Return the processes in order, with ``$NAME`` replaced from the environment. Raises: KeyError."""
    processes = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, command = line.partition(":")
            words = shlex.split(string.Template(command).substitute(environment))
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
    """Run the processes until SIGINT or SIGTERM, and restart them when they die. Call ``on_tick`` twice a second."""
    told_to_stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: told_to_stop.append(number))
    written = ""
    try:
        while not told_to_stop:
            for process in processes:
                _supervise_process(process, environment, say)
            counts = json.dumps({process.name: process.restarts for process in processes})
            if counts != written:
                with contextlib.suppress(OSError):
                    (data_dir / RESTARTS_FILE).write_text(counts)
                    written = counts
            on_tick()
            time.sleep(TICK_SECONDS)
    finally:
        _stop([process.child for process in processes if process.child is not None], stop_seconds)


def _supervise_process(process: Process, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
    now = time.monotonic()
    if process.child is None and now >= process.start_at:
        process.started_at = now
        child = multiprocessing.get_context("fork").Process(
            target=_run_process, args=(os.getpid(), process, environment)
        )
        try:
            child.start()
        except OSError as error:
            what_happened = f"could not be started: {error}"
        else:
            process.child = child
            return
    elif process.child is not None and process.child.exitcode is not None:
        what_happened = f"ended with status {process.child.exitcode}"
    else:
        return
    process.failures = 0 if now - process.started_at > HEALTHY_SECONDS else process.failures + 1
    pause = min(LONGEST_PAUSE_SECONDS, 2**process.failures) if process.failures else 0
    process.child, process.start_at, process.restarts = None, now + pause, process.restarts + 1
    say(f"{process.name} {what_happened}; starting it again in {pause} s.")


def _run_process(parent: int, process: Process, environment: Mapping[str, str]) -> None:
    """Run the program in this forked process. Ctrl-C does not reach it, because the supervisor stops it."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    machine.end_with_parent(parent, f"ragsite-{process.name}")
    machine.raise_oom_score(machine.SITE_SCORE)
    os.environ.update(environment)
    if process.command[:2] != ["python", "-m"]:
        program = sys.executable if process.command[0] == "python" else process.command[0]
        os.execvp(program, [program, *process.command[1:]])  # noqa: S606
    sys.argv = process.command[2:]
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it is a text file
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _stop(children: list[BaseProcess], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for child in children:
        child.terminate()
    for child in children:
        # `join` with a timeout is not used: it wrongly reports the end of a child that runs another program
        # (`os.execvp`).
        while child.exitcode is None and time.monotonic() < deadline:
            time.sleep(TICK_SECONDS / 10)
        if child.exitcode is None and child.pid is not None:
            os.killpg(child.pid, signal.SIGKILL)
            child.join()


def read_restarts(data_dir: Path) -> dict[str, int]:
    """Return how often `serve` has restarted each process since its start; empty if it is not running."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        found: dict[str, int] = json.loads((data_dir / RESTARTS_FILE).read_text())
        return found
    return {}
