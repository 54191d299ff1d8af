"""The current request or task, whose id is part of every log line.

A well-formed `X-Request-ID` of the proxy is used. The response has the id, too. Threads get it by `contextvars`, as
they get deadlines; tasks get it in a header of their message.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from celery.signals import before_task_publish, task_postrun, task_prerun
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from django.utils.functional import SimpleLazyObject, empty

from ragsite.operations import telemetry

HEADER = "X-Request-ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{8,64}")
# Parts of addresses that open something: they must not be logged.
_SECRETS_OF_ADDRESSES = {"token", "key", "uidb36"}
_POLLED = ("/healthz", "/readyz", "/metrics")

access = logging.getLogger("ragsite.access")


@dataclass(frozen=True, slots=True)
class Context:
    """Empty outside of requests and tasks."""

    request_id: str = ""
    task: str = ""
    request: HttpRequest | None = None
    span: Any = None
    started: float = field(default_factory=time.perf_counter)

    def as_fields(self) -> dict[str, Any]:
        """What is known so far. A log line must not query the database."""
        user, key = _caller(self.request)
        known = {"request_id": self.request_id, "task": self.task, "user": user, "key": key}
        return {name: value for name, value in known.items() if value}


_current: ContextVar[Context] = ContextVar("request_context", default=Context())  # noqa: B039 - it is frozen


def current() -> Context:
    return _current.get()


@sync_and_async_middleware
def number_requests(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Gives each request its id, which the response has too, its access line (`LOG_REQUESTS`) and its span.

    No cache may keep a response, because nearly all depend on who asks; views and static files may say otherwise.
    """
    if iscoroutinefunction(get_response):

        async def respond_async(request: HttpRequest) -> HttpResponseBase:
            # Not taken back: the task ends with the request, and a stream is sent after this middleware.
            _current.set(begun := _begin(request))
            return _end(begun, await get_response(request))

        return markcoroutinefunction(respond_async)

    def respond(request: HttpRequest) -> HttpResponseBase:
        token = _current.set(begun := _begin(request))
        try:
            return _end(begun, get_response(request))
        finally:
            _current.reset(token)

    return respond


def _begin(request: HttpRequest) -> Context:
    given = request.headers.get(HEADER, "")
    spans = telemetry.current()
    return Context(
        request_id=given if _WELL_FORMED.fullmatch(given) else uuid.uuid4().hex,
        request=request,
        span=spans.begin_request(request) if spans is not None and request.path not in _POLLED else None,
    )


def _end(begun: Context, response: HttpResponseBase) -> HttpResponseBase:
    response.headers[HEADER] = begun.request_id
    response.headers.setdefault("Cache-Control", "private, no-store")
    request, spans = begun.request, telemetry.current()
    if request is None or request.path in _POLLED:
        return response
    if spans is not None and begun.span is not None:
        spans.end_request(begun.span, request, response)
    if settings.LOG_REQUESTS:
        milliseconds = round((time.perf_counter() - begun.started) * 1000, 1)
        path = _path_without_secrets(request)
        access.info(
            "%s %s %d",
            request.method,
            path,
            response.status_code,
            extra={
                "method": request.method or "",
                "path": path,
                "status": response.status_code,
                "duration_ms": milliseconds,
            },
        )
    return response


def _path_without_secrets(request: HttpRequest) -> str:
    """The path without secrets, and without the query, which may be a question."""
    path = request.path
    match = request.resolver_match
    for name, value in (match.kwargs if match else {}).items():
        if name in _SECRETS_OF_ADDRESSES:
            path = path.replace(str(value), "***")
    return path


def _caller(request: HttpRequest | None) -> tuple[int | None, int | None]:
    """The ids of the user and the API key, if they have been loaded."""
    if request is None:
        return None, None
    user = vars(request).get("user")
    if isinstance(user, SimpleLazyObject):
        user = getattr(request, "_acached_user", None) if user._wrapped is empty else user
    return getattr(user, "pk", None), getattr(getattr(request, "auth", None), "pk", None)


@before_task_publish.connect
def _send_id(headers: dict[str, Any] | None = None, **_: Any) -> None:
    if headers is not None and current().request_id:
        headers["request_id"] = current().request_id


@task_prerun.connect
def _begin_task(task_id: str, task: Any, **_: Any) -> None:
    _current.set(Context(getattr(task.request, "request_id", None) or task_id, task=task.name))


@task_postrun.connect
def _end_task(**_: Any) -> None:
    _current.set(Context())
