"""What caches may keep: nothing of what Django answers, unless the view itself says otherwise.

Nearly every response depends on who asks. Static files are served before this middleware and stay cacheable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

PRIVATE = "private, no-store"


@sync_and_async_middleware
def private_responses(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Marks each response as private and not to be stored, unless its view has set `Cache-Control`."""
    if iscoroutinefunction(get_response):

        async def respond_async(request: HttpRequest) -> HttpResponseBase:
            return _mark(await get_response(request))

        return markcoroutinefunction(respond_async)

    def respond(request: HttpRequest) -> HttpResponseBase:
        return _mark(get_response(request))

    return respond


def _mark(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Cache-Control", PRIVATE)
    return response
