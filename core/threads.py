"""Run blocking work in threads, so that it does not stop the event loop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from core.database import release_connections

# Number of threads for searches.
SEARCHES_AT_ONCE = 4
_SEARCHES = ThreadPoolExecutor(max_workers=SEARCHES_AT_ONCE, thread_name_prefix="search")
# Heartbeats of answers must not wait for searches to end.
_RECORDS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="answers")

P = ParamSpec("P")
R = TypeVar("R")


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await _run(_SEARCHES, function, *args, **kwargs)


async def run_in_database_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await _run(_RECORDS, function, *args, **kwargs)


async def _run(threads: ThreadPoolExecutor, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    def call() -> R:
        try:
            return function(*args, **kwargs)
        finally:
            # The thread is reused, and must not keep a database connection meanwhile.
            release_connections()

    return await sync_to_async(call, thread_sensitive=False, executor=threads)()
