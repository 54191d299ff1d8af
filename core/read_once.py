"""Cache a database value during a `with` block, also in threads that run in a copy of the block's context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

V = TypeVar("V")
_read: ContextVar[dict[object, Any] | None] = ContextVar("read_once", default=None)


@contextmanager
def cache_reads_in_block() -> Iterator[None]:
    """Run a block in which `get_or_read` calls ``read`` only once for each key."""
    token = _read.set({})
    try:
        yield
    finally:
        _read.reset(token)


def get_or_read(key: object, read: Callable[[], V]) -> V:
    """Return ``read()``, which is cached by ``key`` within a `cache_reads_in_block` block."""
    known = _read.get()
    if known is None:
        return read()
    if key not in known:
        known[key] = read()
    value: V = known[key]
    return value
