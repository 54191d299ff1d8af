"""Static files on the event loop.

WhiteNoise's own middleware is synchronous, and puts everything below it into a thread: one for each request that waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # the library has no types
    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        return self._respond(request) if self._is_async else super().__call__(request)

    async def _respond(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase | Awaitable[HttpResponseBase] = super().__call__(request)
        return await response if isawaitable(response) else response
