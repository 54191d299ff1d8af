"""Encodes server-sent events (WHATWG HTML, "Server-sent events") and builds their response."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from django.http import StreamingHttpResponse

_LINE_END = re.compile(r"\r\n|\r|\n")


def encode(data: str, *, event: str, event_id: str = "") -> bytes:
    """Encode an event. Every line of ``data`` arrives, with leading spaces; CR and CRLF arrive as LF.

    Without ``event_id`` the reader keeps the previous id. Names and ids must come from the site.
    """
    lines = [f"id: {event_id}"] if event_id else []
    lines.append(f"event: {event}")
    # Clients ignore an event without a data line, so empty data still gets a line.
    lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode()


def comment(text: str) -> bytes:
    """Encode a comment, which keeps the connection open; clients ignore it."""
    return f": {text}\n\n".encode()


def retry(milliseconds: int) -> bytes:
    """Encode the time after which a client reconnects."""
    return f"retry: {milliseconds}\n\n".encode()


def respond(events: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """Return a streaming response whose headers ask proxies, and nginx in its own way, not to buffer."""
    headers = {"Cache-Control": "private, no-store, no-transform", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=headers)
