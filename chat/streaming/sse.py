"""Server-sent events (WHATWG HTML, "Server-sent events")."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from django.http import StreamingHttpResponse

_LINE_END = re.compile(r"\r\n|\r|\n")


def encode(data: str, *, event: str, event_id: str = "") -> bytes:
    """Encode an event with trusted name and id.

    Lines arrive with leading spaces; CR and CRLF become LF. An empty ``event_id`` keeps the previous one.
    """
    lines = [f"id: {event_id}"] if event_id else []
    lines.append(f"event: {event}")
    # Clients ignore events without data lines.
    lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode()


def comment(text: str) -> bytes:
    """Encode a comment, which clients ignore."""
    return f": {text}\n\n".encode()


def retry(milliseconds: int) -> bytes:
    """Encode the client's pause before it reconnects."""
    return f"retry: {milliseconds}\n\n".encode()


def respond(events: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """Return a streaming response that proxies do not buffer."""
    headers = {"Cache-Control": "private, no-store, no-transform", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=headers)
