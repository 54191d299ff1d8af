"""Limit how many processes and threads of a web server do the same work at once."""

from __future__ import annotations

import contextlib
import fcntl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

LOOK_SECONDS = 0.02


class FileLock:
    """A lock for processes that are forked after its creation. It does not work between threads."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the lock is used

    def acquire(self) -> bool:
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        return True

    def try_acquire(self) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class ProcessSemaphore:
    """A semaphore for threads and processes: at most ``number`` of them run a block at the same time.

    Processes that are forked later share it.
    """

    def __init__(self, number: int) -> None:
        self._locks = [(threading.Lock(), FileLock()) for _ in range(number)]

    @contextlib.contextmanager
    def take(self, may_wait: Callable[[float], bool]) -> Iterator[None]:
        """Wait for a free slot and run a block in it.

        ``may_wait`` gets the seconds waited so far. Raises: TimeoutError when it returns False.
        """
        started = time.monotonic()
        while (held := self._try_acquire_slot()) is None:
            if not may_wait(time.monotonic() - started):
                raise TimeoutError("No turn came in time.")
            time.sleep(LOOK_SECONDS)
        try:
            yield
        finally:
            held[1].release()
            held[0].release()

    def _try_acquire_slot(self) -> tuple[threading.Lock, FileLock] | None:
        for threads, processes in self._locks:
            if threads.acquire(blocking=False):
                if processes.try_acquire():
                    return threads, processes
                threads.release()
        return None
