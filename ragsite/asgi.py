"""Entry point for ASGI servers. WSGI is not offered: it would hold answers back until they are complete."""

from __future__ import annotations

import codecs
import faulthandler
import os
import re
import signal
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

_NAME = b"content-type"
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([^\s;\"']*)", re.IGNORECASE)
# WhiteNoise's files, which are the site's own and small, are read at once; originals of documents are not its business.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
_django = get_asgi_application()
# For the supervisor, which asks a process that hangs what it is busy with before it kills it.
faulthandler.register(signal.SIGUSR1)


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Django, behind a check of the one header that it trusts before its own error handling is in place."""
    if scope["type"] == "http" and any(_names_no_text(value) for name, value in scope["headers"] if name == _NAME):
        await send(
            {"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain; charset=utf-8")]}
        )
        await send({"type": "http.response.body", "body": b"The charset in the Content-Type is not one of text."})
        return
    await _django(scope, receive, send)


def _names_no_text(content_type: bytes) -> bool:
    """Whether the charset is a codec that Python knows and that does not decode to text, such as hex."""
    found = _CHARSET.search(content_type)
    if found is None:
        return False
    name = found[1].decode("latin-1")
    try:
        codecs.lookup(name)
    except (LookupError, ValueError):
        return False  # Django passes over an unknown one
    try:
        "".encode(name)
    except LookupError:
        return True
    return False
