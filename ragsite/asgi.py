"""Entry point for ASGI servers. WSGI is not offered: it would hold answers back until they are complete."""

from __future__ import annotations

import codecs
import json
import os
import re
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import IO, Any

import django
from django.core.handlers.asgi import ASGIHandler

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
django.setup(set_prefix=False)

from ragsite.http.errors import problem  # noqa: E402
from ragsite.http.middleware import BodyTooLong, Receive, add_content_length, limit_body  # noqa: E402
from ragsite.operations import telemetry  # noqa: E402  # these need the settings

Scope = dict[str, Any]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

# For answers that are being saved when the server is told to end.
SAVE_SECONDS = 3.0

_NAME = b"content-type"
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([^\s;\"']*)", re.IGNORECASE)
# WhiteNoise's files, which are the site's own and small, are read at once; originals of documents are not its business.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")


class _Handler(ASGIHandler):
    def create_request(self, scope: Mapping[str, Any], body_file: IO[bytes]) -> Any:
        return super().create_request(add_content_length(scope, body_file), body_file)


_django = _Handler()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Django, behind two checks that its own error handling does not cover: an invalid header, and the size of the
    body.
    """
    if scope["type"] == "lifespan":
        await _run_lifespan(receive, send)
    elif any(_names_no_text(value) for name, value in scope["headers"] if name == _NAME):
        await _refuse(scope, send, 400, "The charset in the Content-Type is not one of text.")
    else:
        try:
            await _django(scope, limit_body(scope["headers"], receive), send)
        except BodyTooLong as error:
            # Django reads the whole body before it sends anything.
            await _refuse(scope, send, 413, str(error))


async def _run_lifespan(receive: Receive, send: Send) -> None:
    """The process's lifespan: telemetry begins at start; at shutdown, other processes take over its answers."""
    # Models cannot be imported before Django is set up.
    from chat.streaming.writing import leave_to_others

    await receive()
    telemetry.start()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await leave_to_others(SAVE_SECONDS)
    await send({"type": "lifespan.shutdown.complete"})


async def _refuse(scope: Scope, send: Send, status: int, sentence: str) -> None:
    body = problem(scope["path"], status, sentence)
    content_type = b"text/plain; charset=utf-8" if body is None else b"application/json"
    content = (sentence if body is None else json.dumps(body)).encode()
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(content)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def _names_no_text(content_type: bytes) -> bool:
    """Whether the charset is a Python codec that does not decode to text, such as hex."""
    found = _CHARSET.search(content_type)
    try:
        return found is not None and not codecs.lookup(found[1].decode("latin-1"))._is_text_encoding
    except (LookupError, ValueError):
        return False  # Django passes over an unknown one
