"""The worker's pool of processes, so that the death of one, or of the worker itself, does not stop the others.

The processes of a pool take their tasks from one pipe, under a lock that a killed process would keep for ever: those
that are left, and those that replace it, would wait for it, and the worker would not even end when told to. The locks
here are the kernel's, which releases them with the process that holds them.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

from billiard import current_process
from billiard.pool import Pool
from celery.concurrency import prefork, thread
from celery.signals import celeryd_after_setup, worker_process_init

from core.slots import FileLock

LOOK_SECONDS = 1.0


class LastingPool(Pool):
    def _setup_queues(self) -> None:
        super()._setup_queues()  # type: ignore[misc]  # the stubs know only what is public
        for queue in (self._inqueue, self._outqueue):  # type: ignore[attr-defined]  # made by the line above
            queue._rlock, queue._wlock = FileLock(), FileLock()


class TaskPool(prefork.TaskPool):
    BlockingPool = LastingPool


@celeryd_after_setup.connect
def _begin_threads(instance: Any, **_: Any) -> None:
    """Have a worker of threads do what a process of a pool does at its start."""
    if issubclass(instance.pool_cls, thread.TaskPool):
        worker_process_init.send(sender=None)


@worker_process_init.connect
def _end_with_the_worker(**_: Any) -> None:
    """Have this process of the pool killed when the worker is gone: nobody would take its results any more.

    Not by PR_SET_PDEATHSIG, which also comes when only the thread has ended that this process was forked from.
    """
    if current_process().name != "MainProcess":
        threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
