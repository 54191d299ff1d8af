"""A pool of worker processes for Celery, in which a process that dies does not stop the others.

In Celery's own pool, a killed process never releases its lock of the common pipe.
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
    if issubclass(instance.pool_cls, thread.TaskPool):
        worker_process_init.send(sender=None)


@worker_process_init.connect
def _start_watching_worker(**_: Any) -> None:
    """Kill this process when the worker ends.

    PR_SET_PDEATHSIG would kill it too early, when the worker's thread that started it ends.
    """
    if current_process().name != "MainProcess":
        threading.Thread(target=_kill_process_when_parent_ends, args=(os.getppid(),), daemon=True).start()


def _kill_process_when_parent_ends(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
