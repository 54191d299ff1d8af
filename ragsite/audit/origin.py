"""Where an action comes from: the request that is being answered, a task, or a command."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from celery import current_task
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from ragsite.models import ApiKey, AuditEntry
from retrieval.api.callers import address_of

_request: ContextVar[HttpRequest | None] = ContextVar("audited_request", default=None)
_API = ("/api/", "/v1/")


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """``user`` is None for visitors, and where nobody is signed in."""

    user: Any
    key: str
    via: AuditEntry.Via
    address: str


@sync_and_async_middleware
def remember_request(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Lets what is recorded while a request is answered say who sent it.

    The request is remembered, not its user: an API view finds out who calls only when it looks at the credentials.
    """
    if iscoroutinefunction(get_response):

        async def respond_async(request: HttpRequest) -> HttpResponseBase:
            token = _request.set(request)
            try:
                response: HttpResponseBase = await get_response(request)
                return response
            finally:
                _request.reset(token)

        return markcoroutinefunction(respond_async)

    def respond(request: HttpRequest) -> HttpResponseBase:
        token = _request.set(request)
        try:
            response: HttpResponseBase = get_response(request)
            return response
        finally:
            _request.reset(token)

    return respond


def current_origin() -> RequestOrigin:
    request = _request.get()
    if request is None:
        return RequestOrigin(None, "", AuditEntry.Via.TASK if current_task else AuditEntry.Via.COMMAND, "")
    user = getattr(request, "user", None)
    key = getattr(request, "auth", None)
    return RequestOrigin(
        user if getattr(user, "is_authenticated", False) else None,
        key.public_id if isinstance(key, ApiKey) else "",
        AuditEntry.Via.API if request.path.startswith(_API) else AuditEntry.Via.PAGE,
        address_of(request)[:60],
    )
