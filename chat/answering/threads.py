"""The few threads in which questions are searched, weighed and checked."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

# Searching, weighing and checking take processor time and a database connection, writing by a model takes neither.
SEARCHES_AT_ONCE = 4
_THREADS = ThreadPoolExecutor(max_workers=SEARCHES_AT_ONCE, thread_name_prefix="search")

P = ParamSpec("P")
R = TypeVar("R")


def in_thread(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """``function`` run in one of the few threads that search."""
    return sync_to_async(function, thread_sensitive=False, executor=_THREADS)
