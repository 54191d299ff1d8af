"""Write log lines, as text or JSON, with the id of their request or task, and without users' texts."""

from __future__ import annotations

import copy
import json
import logging
import re
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from celery.signals import before_task_publish, task_postrun, task_prerun
from celery.states import FAILURE
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from django.utils.functional import SimpleLazyObject, empty

from ragsite.operations import telemetry

HEADER = "X-Request-ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{8,64}")
_SECRETS_OF_ADDRESSES = {"token", "key", "uidb36"}
_POLLED = ("/healthz", "/readyz", "/metrics")

access = logging.getLogger("ragsite.access")


@dataclass(frozen=True, slots=True)
class Context:
    request_id: str = ""
    task: str = ""
    request: HttpRequest | None = None
    span: Any = None
    started: float = field(default_factory=time.perf_counter)

    def as_fields(self) -> dict[str, object]:
        """Return the fields for a log line, with the user only if it is loaded already."""
        user = vars(self.request).get("user") if self.request is not None else None
        if isinstance(user, SimpleLazyObject) and user._wrapped is empty:
            user = getattr(self.request, "_acached_user", None)
        key = getattr(self.request, "auth", None)
        known: dict[str, object] = {"request_id": self.request_id, "task": self.task}
        known |= {"user": getattr(user, "pk", None), "key": getattr(key, "pk", None)}
        return {name: value for name, value in known.items() if value}


_current: ContextVar[Context] = ContextVar("request_context", default=Context())  # noqa: B039 - it is frozen


def get_log_context() -> Context:
    return _current.get()


@sync_and_async_middleware
def identify_and_log_requests(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Wrap Django's handler: each request gets an id, a line in the access log (`LOG_REQUESTS`) and a tracing span.

    Responses are not cached unless a view allows it.
    """
    if iscoroutinefunction(get_response):

        async def respond_async(request: HttpRequest) -> HttpResponseBase:
            # A stream is sent after this function returns, so the variable is not reset.
            _current.set(begun := _begin(request))
            return _finish_request(begun, await get_response(request))

        return markcoroutinefunction(respond_async)

    def respond(request: HttpRequest) -> HttpResponseBase:
        token = _current.set(begun := _begin(request))
        try:
            return _finish_request(begun, get_response(request))
        finally:
            _current.reset(token)

    return respond


def _begin(request: HttpRequest) -> Context:
    given = request.headers.get(HEADER, "")
    spans = telemetry.get_spans()
    return Context(
        request_id=given if _WELL_FORMED.fullmatch(given) else uuid.uuid4().hex,
        request=request,
        span=spans.begin_request(request) if spans is not None and request.path not in _POLLED else None,
    )


def _finish_request(begun: Context, response: HttpResponseBase) -> HttpResponseBase:
    response.headers[HEADER] = begun.request_id
    response.headers.setdefault("Cache-Control", "private, no-store")
    request, spans = begun.request, telemetry.get_spans()
    if request is None or request.path in _POLLED:
        return response
    if spans is not None and begun.span is not None:
        spans.end_request(begun.span, request, response)
    if settings.LOG_REQUESTS:
        milliseconds = round((time.perf_counter() - begun.started) * 1000, 1)
        facts = {"method": request.method or "", "path": _hide_secrets(request), "status": response.status_code}
        access.info("%(method)s %(path)s %(status)d", facts, extra={**facts, "duration_ms": milliseconds})
    return response


def _hide_secrets(request: HttpRequest) -> str:
    path = request.path
    match = request.resolver_match
    for name, value in (match.kwargs if match else {}).items():
        if name in _SECRETS_OF_ADDRESSES:
            path = path.replace(str(value), "***")
    return path


@before_task_publish.connect
def _add_task_headers(headers: dict[str, object] | None = None, **_: Any) -> None:
    if headers is None:
        return
    if get_log_context().request_id:
        headers["request_id"] = get_log_context().request_id
    if (spans := telemetry.get_spans()) is not None:
        spans.inject_headers(headers)


@task_prerun.connect
def _begin_task(task_id: str, task: Any, **_: Any) -> None:
    spans = telemetry.get_spans()
    span = spans.begin_task(task) if spans is not None else None
    _current.set(Context(getattr(task.request, "request_id", None) or task_id, task=task.name, span=span))


@task_postrun.connect
def _end_task(retval: Any = None, state: str | None = None, **_: Any) -> None:
    spans, span = telemetry.get_spans(), get_log_context().span
    if spans is not None and span is not None:
        spans.end(span, type(retval).__name__ if state == FAILURE else "")
    _current.set(Context())


# A library may quote users' texts in a message, so only its first line, up to this length, is logged.

LONGEST_CHARACTERS = 1000
_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class ClientErrorTracebackFilter(logging.Filter):
    """A log filter that removes the tracebacks of responses below 500, such as 403."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = None
        return True


class TextFormatter(logging.Formatter):
    """Formats a log record as one line that ends with the request's id. Errors add a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        request_id = get_log_context().request_id
        shortened = copy.copy(record)
        shortened.msg = _format_message(record) + (f" [{request_id}]" if request_id else "")
        shortened.args = shortened.exc_text = None
        return super().format(shortened)

    def formatException(self, exc_info: Any) -> str:  # noqa: N802 - its name in `logging`
        return describe_error(exc_info[1])


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _format_message(record),
            **get_log_context().as_fields(),
        }
        for name, value in vars(record).items():
            if name not in _OWN_ATTRIBUTES and isinstance(value, str | int | float):
                line[name] = _shorten_to_first_line(value) if isinstance(value, str) else value
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = describe_error(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def describe_error(error: BaseException) -> str:
    """Return the tracebacks of the error's causes and of the error, each with the first line of its message."""
    parts = []
    for each in reversed(list(_list_causes(error))):
        parts.append("Traceback (most recent call last):\n" + "".join(traceback.format_tb(each.__traceback__)))
        parts[-1] += f"{type(each).__name__}: {_shorten_to_first_line(str(each))}"
    return "\n".join(parts)


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _format_message(record: logging.LogRecord) -> str:
    args = record.args
    if isinstance(args, tuple):
        args = tuple(_shorten_to_first_line(str(each)) if isinstance(each, BaseException) else each for each in args)
    message = str(record.msg)
    return _shorten_to_first_line(message % args if args else message)


def _shorten_to_first_line(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    line = lines[0][:LONGEST_CHARACTERS]
    return line if line == text.strip() else f"{line} …"
