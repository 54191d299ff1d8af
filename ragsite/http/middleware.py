"""Serve static files on the event loop, limit the size of request bodies, and redirect to addresses with a slash.

Without the limit, Django writes any body to a file before a view runs.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from os import SEEK_END
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any
from wsgiref.headers import Headers

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]
from whitenoise.responders import StaticFile  # type: ignore[import-untyped]

Header = tuple[bytes, bytes]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]


class _RedirectWithBody(HttpResponsePermanentRedirect):
    status_code = 308


class SlashMiddleware(CommonMiddleware):
    """Django's middleware, whose redirect to the address with a slash keeps the method and the body of a request."""

    response_redirect_class = _RedirectWithBody


class BodyTooLong(Exception):
    def __init__(self, limit: int) -> None:
        super().__init__(f"The request is larger than {limit // 2**20} MiB.")


def limit_body(headers: Sequence[Header], receive: Receive) -> Receive:
    """Wrap ``receive`` so that it raises BodyTooLong when the body is longer than allowed.

    A large `Content-Length` raises it at once.
    """
    has_files = _find_value(headers, b"content-type").lstrip().lower().startswith(b"multipart/form-data")
    limit: int = settings.REQUEST_MAX_BYTES if has_files else settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    declared = _find_value(headers, b"content-length")
    if declared.isdigit() and int(declared) > limit:
        raise BodyTooLong(limit)
    received = 0

    async def receive_within_limit() -> Mapping[str, Any]:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise BodyTooLong(limit)
        return message

    return receive_within_limit


def add_content_length(scope: Mapping[str, Any], body: IO[bytes]) -> Mapping[str, Any]:
    if not _find_value(scope["headers"], b"transfer-encoding"):
        return scope
    length = body.seek(0, SEEK_END)
    body.seek(0)
    others = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    return {**scope, "headers": [*others, (b"content-length", str(length).encode())]}


def _find_value(headers: Iterable[Header], wanted: bytes) -> bytes:
    return next((value for name, value in headers if name == wanted), b"")


COMPRESSIBLE = frozenset({".css", ".js", ".svg", ".json", ".map", ".txt", ".html"})
SMALLEST_COMPRESSED = 500  # bytes


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # the library has no types
    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def get_static_file(self, path: str, url: str, stat_cache: object = None) -> StaticFile:
        headers = Headers([])
        self.add_mime_headers(headers, path, url)
        self.add_cache_headers(headers, path, url)
        return StaticFile(path, headers.items(), encodings={"gzip": str(_compress(Path(path)))})

    def __call__(self, request: HttpRequest) -> Any:
        return self._respond(request) if self._is_async else super().__call__(request)

    async def _respond(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase | Awaitable[HttpResponseBase] = super().__call__(request)
        return await response if isawaitable(response) else response


def _compress(path: Path) -> Path:
    """Return the path of a file's compressed copy, which is written if it is missing.

    If the file is small or would hardly shrink, no copy is written, and the path does not exist.
    """
    stat = path.stat()
    key = hashlib.sha256(f"{path} {stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()[:32]
    copy = settings.DATA_DIR / "static" / f"{key}.gz"
    if copy.exists() or path.suffix not in COMPRESSIBLE or stat.st_size < SMALLEST_COMPRESSED:
        return copy
    copy.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may write the copy at once, so each renames its own temporary file, which is atomic.
    with NamedTemporaryFile(dir=copy.parent, delete=False) as file:
        file.write(gzip.compress(path.read_bytes(), mtime=0))
    Path(file.name).replace(copy)
    return copy
