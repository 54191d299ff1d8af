"""Requests that never reach a view."""

from __future__ import annotations

import asyncio

import pytest

from ragsite.asgi import application


async def status(content_type: str) -> int:
    sent: list[dict[str, object]] = []

    bodies = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, object]:
        if bodies:
            return bodies.pop()
        await asyncio.sleep(60)  # the client stays on the line
        raise AssertionError("nobody should wait that long")

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/healthz",
        "raw_path": b"/healthz",
        "query_string": b"q=1",
        "headers": [(b"host", b"localhost"), (b"content-type", content_type.encode("latin-1"))],
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
    }
    await application(scope, receive, send)  # type: ignore[arg-type]
    return int(str(sent[0]["status"]))


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("text/plain", 200),
        ("text/plain; charset=utf-8", 200),
        ('text/plain; charset="latin-1"', 200),
        ("text/plain; charset=no-such-thing", 200),
        ("text/plain; charset=hex", 400),
        ("text/plain; Charset = rot13", 400),
    ],
)
async def test_a_charset_that_is_no_text_is_refused(content_type: str, expected: int) -> None:
    assert await status(content_type) == expected
