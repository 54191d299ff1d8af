"""Server-sent events (WHATWG HTML, "Server-sent events"): as bytes, and as a response."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from django.http import StreamingHttpResponse

_LINE_END = re.compile(r"\r\n|\r|\n")


def encode(data: str, *, event: str, event_id: str = "") -> bytes:
    """One event. Every line of ``data`` arrives, leading spaces included; CR and CRLF arrive as LF.

    Without ``event_id`` the reader keeps the id of the event before. Names and ids are the site's own.
    """
    lines = [f"id: {event_id}"] if event_id else []
    lines.append(f"event: {event}")
    # An event without a data line is never dispatched, so empty data still gets one.
    lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode()


def comment(text: str) -> bytes:
    """An SSE comment that keeps the connection open; clients ignore it."""
    return f": {text}\n\n".encode()


def retry(milliseconds: int) -> bytes:
    """The `retry` field: how long a client waits before it reconnects."""
    return f"retry: {milliseconds}\n\n".encode()


def respond(events: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """A streaming response of the events. Headers ask proxies not to buffer them; nginx has a header of its own."""
    headers = {"Cache-Control": "private, no-store, no-transform", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=headers)
