"""Work that several wait for is done once, by a few threads, and stops when nobody waits any more. PURE."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Result = TypeVar("Result")
IsWanted = Callable[[float], bool]


class TooMuchWork(Exception):
    """So much waits to be done already that nothing is added."""


@dataclass(slots=True)
class _Work(Generic[Result]):
    waiting: int = 0
    future: Future[Result] = field(default_factory=Future)


class SharedWork(Generic[Result]):
    """At most ``threads`` pieces are done at once; ``longest_queue`` more and ``most_waiting`` callers may wait."""

    def __init__(self, threads: int, longest_queue: int, most_waiting: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="shared-work")
        self._most_pieces = threads + longest_queue
        self._most_waiting = most_waiting
        self._pieces: dict[Hashable, _Work[Result]] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def join_work(self, key: Hashable, function: Callable[[IsWanted], Result]) -> Iterator[Future[Result]]:
        """What ``function`` will return, or what it returns to another who asked for ``key`` and still waits.

        It is called with a function that says whether anybody is in this context still; before it is begun, it is
        dropped when nobody is. Raises: TooMuchWork.
        """
        with self._lock:
            if sum(other.waiting for other in self._pieces.values()) >= self._most_waiting:
                raise TooMuchWork(f"{self._most_waiting} wait already.")
            piece = self._pieces.get(key)
            if piece is None:
                if len(self._pieces) >= self._most_pieces:
                    raise TooMuchWork(f"{len(self._pieces)} pieces of work wait already.")
                piece = self._pieces[key] = _Work()
                self._executor.submit(self._do, key, piece, function)
            piece.waiting += 1
        try:
            yield piece.future
        finally:
            with self._lock:
                piece.waiting -= 1
                if not piece.waiting and self._pieces.get(key) is piece:
                    # Whoever asks from now on is not to join work that is being given up.
                    del self._pieces[key]

    def _do(self, key: Hashable, piece: _Work[Result], function: Callable[[IsWanted], Result]) -> None:
        # The lock makes sure that who caused this is counted.
        with self._lock:
            is_wanted = piece.waiting > 0
        if not is_wanted or not piece.future.set_running_or_notify_cancel():
            return
        try:
            piece.future.set_result(function(lambda _elapsed: piece.waiting > 0))
        except BaseException as error:  # noqa: BLE001 - whoever waits is to have it
            piece.future.set_exception(error)
        finally:
            with self._lock:
                if self._pieces.get(key) is piece:
                    del self._pieces[key]
