"""Encode server-sent events (WHATWG HTML, "Server-sent events")."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from django.http import StreamingHttpResponse

_LINE_END = re.compile(r"\r\n|\r|\n")


def encode_event(data: str, *, event: str, event_id: str = "") -> bytes:
    """Encode an event. Its name and id are not escaped, so they must come from this site.

    If ``event_id`` is empty, the client keeps its last id.
    """
    lines = [f"id: {event_id}"] if event_id else []
    lines.append(f"event: {event}")
    # Clients ignore events without data lines.
    lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode()


def encode_comment(text: str) -> bytes:
    return f": {text}\n\n".encode()


def encode_retry(milliseconds: int) -> bytes:
    return f"retry: {milliseconds}\n\n".encode()


def build_event_response(events: AsyncIterator[bytes]) -> StreamingHttpResponse:
    headers = {"Cache-Control": "private, no-store, no-transform", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=headers)
