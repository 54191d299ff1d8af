"""The time that is left for one question: set where its work begins, read by every part that waits. PURE.

A `contextvars.ContextVar` carries it: tasks and `sync_to_async` copy it by themselves, a thread pool does not
(:class:`Stage` does).
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
    """``ends_at`` is a time of the monotonic clock. ``failed`` names the parts that have failed this question: it
    asks none of them a second time.
    """

    ends_at: float
    failed: set[str] = field(default_factory=set)


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


@contextmanager
def limit(seconds: float) -> Iterator[Deadline]:
    """All that runs within has ``seconds``, or what an outer limit leaves of them."""
    outer = _current.get()
    ends_at = time.monotonic() + seconds
    inner = Deadline(ends_at) if outer is None else Deadline(min(ends_at, outer.ends_at), outer.failed)
    token = _current.set(inner)
    try:
        yield inner
    finally:
        _current.reset(token)


def current() -> Deadline | None:
    """The deadline of this question; None outside a question."""
    return _current.get()


def seconds_left(at_most: float) -> float:
    """How long a part may take that has ``at_most`` seconds of its own; 0 when the question's time is over."""
    deadline = _current.get()
    return at_most if deadline is None else max(0.0, min(at_most, deadline.ends_at - time.monotonic()))


class Stage(Generic[R]):
    """A part of this question's work in a thread pool. Its time begins when a thread takes it up."""

    def __init__(self, executor: Executor, work: Callable[[], R]) -> None:
        self._begun = Event()
        self._began_at = 0.0
        # The context of this question, with its deadline, holds in the thread.
        self._future = executor.submit(copy_context().run, self._run, work)

    def result(self, seconds: float) -> R:
        """What the work returns, or raises. Raises: TimeoutError when it was not taken up within ``seconds``, or not
        done within as many more.
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
