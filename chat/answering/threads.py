"""Threads for the parts of an answer that would block the event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from core.database import give_connections_back

# Searching, weighing and checking take processor time and a database connection, writing by a model takes neither.
SEARCHES_AT_ONCE = 4
_SEARCHES = ThreadPoolExecutor(max_workers=SEARCHES_AT_ONCE, thread_name_prefix="search")
# Their own, so that no heartbeat waits behind the searches of a hundred questions.
_RECORDS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="answers")

P = ParamSpec("P")
R = TypeVar("R")


def in_thread(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Run ``function`` in one of the few threads that search."""
    return _run_in(_SEARCHES, function)


def in_database(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Run ``function`` in one of the threads that read and store answers and their events."""
    return _run_in(_RECORDS, function)


def _run_in(threads: ThreadPoolExecutor, function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        finally:
            # The thread belongs to a pool: what it leaves open stays open, and a waiting stream must hold nothing.
            give_connections_back()

    return sync_to_async(call, thread_sensitive=False, executor=threads)
