"""Files read in several processes: of this machine's processors, none waits while another document is written."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from django.db import connections

from retrieval import conf

Work = TypeVar("Work")
Result = TypeVar("Result")

# Enough that no process waits for the next file, few enough that their contents take no memory to speak of.
_WAITING_PER_PROCESS = 4
_PR_SET_PDEATHSIG = 1


def in_processes(
    function: Callable[[Work], Result], works: Iterable[Work], processes: int
) -> Iterator[tuple[Work, Future[Result]]]:
    """Each work with the future of its result, as they end. With one process, in this one.

    A process that dies leaves its works and all later ones with :class:`BrokenProcessPool`.
    """
    if processes <= 1:
        for work in works:
            future: Future[Result] = Future()
            future.set_result(function(work))
            yield work, future
        return
    # A connection that two processes use mixes up their answers.
    for connection in connections.all(initialized_only=True):
        connection.close()
        if connection.settings_dict["OPTIONS"].get("pool"):
            connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL's has one
    left = iter(works)
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(os.getpid(), processes)) as pool:

        def begin(work: Work) -> Future[Result]:
            try:
                return pool.submit(function, work)
            except BrokenProcessPool as error:
                broken: Future[Result] = Future()
                broken.set_exception(error)
                return broken

        try:
            running = {begin(work): work for work in islice(left, processes * _WAITING_PER_PROCESS)}
            while running:
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield running.pop(future), future
                    running.update((begin(work), work) for work in islice(left, 1))
        except BaseException:
            # Interrupted: what is being read is read to its end, and nothing else is begun.
            pool.shutdown(cancel_futures=True)
            raise


def _begin(parent: int, processes: int) -> None:
    """A process that outlived the command would go on reading what the command's successor reads."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # An interruption is the command's to answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() != parent:
        os._exit(1)
    embedder = conf.embedder()
    if threads := getattr(embedder, "threads", 0):
        embedder.threads = max(1, threads // processes)  # type: ignore[attr-defined]  # an embedder of this machine
