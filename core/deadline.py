"""Limit the time for one question.

The deadline is in a `contextvars.ContextVar`. Async tasks and `sync_to_async` copy its value, but thread pools do not.
So work in a thread pool needs a :class:`Stage`, which copies it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Event
from typing import Generic, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time at which a question must be answered, by the monotonic clock.

    ``failed`` are names of servers that are not called again for this question.
    """

    ends_at: float
    failed: set[str] = field(default_factory=set)


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def limit_time(seconds: float) -> Iterator[Deadline]:
    """Run a block with a deadline after ``seconds``, or with an outer block's earlier deadline."""
    outer = _current.get()
    ends_at = time.monotonic() + seconds
    inner = Deadline(ends_at) if outer is None else Deadline(min(ends_at, outer.ends_at), outer.failed)
    token = _current.set(inner)
    try:
        yield inner
    finally:
        _current.reset(token)


def get_current() -> Deadline | None:
    return _current.get()


def seconds_left(at_most: float) -> float:
    """Return the smaller of ``at_most`` and the remaining time of the current question, in seconds; at least 0."""
    deadline = _current.get()
    return at_most if deadline is None else max(0.0, min(at_most, deadline.ends_at - time.monotonic()))


class Stage(Generic[R]):
    """A stage of a search: a function call in a thread pool."""

    def __init__(self, executor: Executor, work: Callable[[], R]) -> None:
        self._begun = Event()
        self._began_at = 0.0
        self._future = executor.submit(copy_context().run, self._run, work)

    def result(self, seconds: float) -> R:
        """Wait for the call and return its result, or raise its error.

        Raises: TimeoutError if the call does not start within ``seconds``, or then runs longer than ``seconds``.
        """
        try:
            if not self._begun.wait(seconds):
                raise TimeoutError
            return self._future.result(timeout=max(0.0, self._began_at + seconds - time.monotonic()))
        except TimeoutError:
            self._future.cancel()
            raise

    def _run(self, work: Callable[[], R]) -> R:
        self._began_at = time.monotonic()
        self._begun.set()
        return work()
