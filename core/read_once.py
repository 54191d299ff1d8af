"""Values that are read from the database at most once in a block, also by threads that copy its context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

V = TypeVar("V")
_read: ContextVar[dict[object, Any] | None] = ContextVar("read_once", default=None)


@contextmanager
def read_once() -> Iterator[None]:
    """Run the body with a new memory of what was read."""
    token = _read.set({})
    try:
        yield
    finally:
        _read.reset(token)


def get_or_read(key: object, read: Callable[[], V]) -> V:
    """Return what was read for ``key`` in this block, or read it. Outside of a block it is always read."""
    known = _read.get()
    if known is None:
        return read()
    if key not in known:
        known[key] = read()
    value: V = known[key]
    return value
