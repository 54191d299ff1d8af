"""Work in a process of its own, forked from this one: what this one has loaded is there, shared until it changes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

from django.core.management.base import CommandError
from django.db import connections

T = TypeVar("T")

_CONTEXT = multiprocessing.get_context("fork")


class Fork:
    """A child that does ``work`` and ends, with as much of `subprocess.Popen` as a supervisor needs.

    To be made by a process without threads: a lock that one of them holds would never open in the child.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        connections.close_all()
        self._child = _CONTEXT.Process(target=_lead, args=(work,))
        self._child.start()
        self.pid = self._child.pid or 0

    def poll(self) -> int | None:
        return self._child.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._child.join(timeout)
        status = self._child.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(self._child.name, timeout or 0.0)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _lead(work: Callable[[], None]) -> None:
    """Do the work as the leader of a group, deaf to what the parent listens to."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    work()


def share_memory() -> None:
    """Have forks share what is loaded by now: the garbage collector would write to it, and make copies everywhere."""
    gc.collect()
    gc.freeze()


def run_forked(work: Callable[[], T], meanwhile: Callable[[], None] = lambda: None) -> T:
    """What ``work`` returns, computed in a child of this process, whose memory is gone when it is done; what is pickled
    fits through. This process does ``meanwhile``.

    To be called before this process starts threads. Raises: CommandError as the child raised it, or when the child
    ended otherwise; then its traceback is on standard error.
    """
    # Two processes that share a connection would read each other's answers.
    connections.close_all()
    receiving, sending = _CONTEXT.Pipe(duplex=False)
    child = _CONTEXT.Process(target=_run, args=(work, sending), name="preparation")
    child.start()
    sending.close()
    try:
        meanwhile()
        error, result = receiving.recv()
    except EOFError:
        raise CommandError("The preparation ended before it was done.") from None
    finally:
        receiving.close()
        child.join()
    if error is not None:
        raise CommandError(error)
    done: T = result
    return done


def _run(work: Callable[[], object], sending: Connection) -> None:
    try:
        result = work()
    except CommandError as error:
        sending.send((str(error), None))
    else:
        connections.close_all()
        sending.send((None, result))
