"""The ASGI application. A WSGI server could not send an answer piece by piece."""

from __future__ import annotations

import codecs
import os
import re
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import IO, Any

import django
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
django.setup(set_prefix=False)

from ragsite.http.errors import build_refusal  # noqa: E402
from ragsite.http.middleware import BodyTooLong, Receive, add_content_length, limit_body  # noqa: E402
from ragsite.operations import telemetry  # noqa: E402  # these need the settings
from retrieval.text.encodings import find_python_codec  # noqa: E402

Scope = dict[str, object]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

SAVE_SECONDS = 3.0

# Django warns that it reads a whole static file before it sends it. The static files are small, so this does no harm.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")


# Django would accept any codec of Python in a parameter of this form (RFC 2231), so it is refused.
_NAMES_AN_ENCODING = re.compile(rb"\*\s*=")


class _Handler(ASGIHandler):
    """An ASGI handler with checks that Django lacks: the size of a body, the host, and encodings of parameters."""

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().handle(scope, limit_body(scope["headers"], receive), send)
        except BodyTooLong as error:
            # Django sends nothing before it has read the whole body, so a refusal can be sent here.
            await self.send_response(_make_refusal(scope, 413, str(error)), send)

    def create_request(self, scope: Mapping[str, Any], body_file: IO[bytes]) -> Any:
        hosts = sum(name == b"host" for name, _value in scope["headers"])
        if hosts > 1 or (not hosts and scope["http_version"] == "1.1"):
            return None, _make_refusal(scope, 400, "The request must name its host, once.")
        parsed = (value for name, value in scope["headers"] if name in (b"content-type", b"accept"))
        if any(map(_NAMES_AN_ENCODING.search, parsed)):
            return None, _make_refusal(scope, 400, "A parameter of a header must not name an encoding.")
        request, refused = super().create_request(add_content_length(scope, body_file), body_file)
        if request is None or not request.encoding or find_python_codec(codecs.lookup(request.encoding).name):
            return request, refused
        return None, _make_refusal(scope, 400, "The charset in the Content-Type is not one of text.")


def _make_refusal(scope: Mapping[str, Any], status: int, sentence: str) -> HttpResponse:
    content_type = "text/plain; charset=utf-8"
    return build_refusal(scope["path"], status, sentence, lambda: HttpResponse(sentence, content_type, status))


_django = _Handler()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        await _run_lifespan(receive, send)
    elif scope["type"] == "websocket":
        # The server responds with 403 to a web socket that is closed before it is accepted.
        await receive()
        await send({"type": "websocket.close"})
    else:
        await _django(scope, receive, send)


async def _run_lifespan(receive: Receive, send: Send) -> None:
    from chat.streaming.writing import release_answers_of_this_process

    await receive()
    telemetry.start_telemetry()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await release_answers_of_this_process(SAVE_SECONDS)
    await send({"type": "lifespan.shutdown.complete"})
