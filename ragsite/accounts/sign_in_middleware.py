"""The HTTP status of a sign-in form that was refused by a limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware


@sync_and_async_middleware
def refused_sign_ins(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Sets status and Retry-After as `ragsite.accounts.backend.refuse` asks: the form alone would be shown with 200."""
    if iscoroutinefunction(get_response):

        async def respond_async(request: HttpRequest) -> HttpResponseBase:
            return _with_status(request, await get_response(request))

        return markcoroutinefunction(respond_async)

    return lambda request: _with_status(request, get_response(request))


def _with_status(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    refusal = getattr(request, "sign_in_refusal", None)
    if refusal is not None:
        response.status_code, wait_seconds = refusal
        response["Retry-After"] = str(wait_seconds)
    return response
