"""Server-sent events as bytes (WHATWG HTML, "Server-sent events"); nothing else."""

from __future__ import annotations

import re

_LINE_END = re.compile(r"\r\n|\r|\n")


def encode(data: str, *, event: str, event_id: str = "") -> bytes:
    """One event. Every line of ``data`` arrives, leading spaces included; CR and CRLF arrive as LF.

    Without ``event_id`` the reader keeps the id of the event before. Raises: ValueError for a name or id that would
    break out of its line.
    """
    for field in (event, event_id):
        if _LINE_END.search(field) or "\0" in field:
            raise ValueError(f"An event's name and id are single lines, not {field!r}.")
    lines = [f"id: {event_id}"] if event_id else []
    lines.append(f"event: {event}")
    # An event without a data line is never dispatched, so empty data still gets one.
    lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode()


def comment(text: str = "") -> bytes:
    """A sign of life that readers ignore."""
    return b": " + _LINE_END.sub(" ", text).encode() + b"\n\n"


def retry(milliseconds: int) -> bytes:
    """How long the reader waits before it connects again."""
    return f"retry: {milliseconds}\n\n".encode()
