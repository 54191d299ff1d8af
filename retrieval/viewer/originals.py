"""The files of documents as they were added, sent piece by piece."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import PurePath
from typing import Any, BinaryIO

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import FileResponse, Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header

from retrieval.ingest.formats import PDF, View, view_of
from retrieval.models import Document

_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+")
_BLOCK_BYTES = 256 * 2**10
# A browser's own viewer writes the page it shows the file in: it may style that page and put this very file into it,
# and nothing else.
_VIEWER_POLICY = (
    "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def download(request: HttpRequest, document: Document) -> HttpResponseBase:
    """The file, to be saved and never shown: it could hold anything. Raises: Http404 when it is gone."""
    media_type = document.media_type if _MEDIA_TYPE.fullmatch(document.media_type) else "application/octet-stream"
    return _send(request, document, _open(document), media_type, as_attachment=True)


def show_pdf(request: HttpRequest, document: Document) -> HttpResponseBase:
    """A PDF file, to be shown by the browser. Raises: Http404 for all that is no PDF, and for a file that is gone."""
    if view_of(document.media_type) is not View.PRINTED:
        raise Http404
    file = _open(document)
    is_pdf = file.read(1024).lstrip().startswith(b"%PDF-")
    file.seek(0)
    if not is_pdf:
        file.close()
        raise Http404
    response = _send(request, document, file, PDF, as_attachment=False)
    response["Content-Security-Policy"] = _VIEWER_POLICY
    return response


def _open(document: Document) -> BinaryIO:
    try:
        return document.file.open("rb")  # type: ignore[return-value]
    except (ValueError, FileNotFoundError) as error:
        raise Http404 from error


def _send(
    request: HttpRequest, document: Document, file: BinaryIO, media_type: str, *, as_attachment: bool
) -> HttpResponseBase:
    name = PurePath(document.source.replace("\\", "/")).name or f"document-{document.pk}"
    response: Any
    if isinstance(request, ASGIRequest):
        # FileResponse would be read whole before its first byte is sent.
        response = StreamingHttpResponse(_blocks(file), content_type=media_type)
        # Also for a response that is closed before anybody has asked for its first block.
        response._resource_closers.append(file.close)
        response["Content-Length"] = document.file.size
        response["Content-Disposition"] = content_disposition_header(as_attachment, name)
    else:
        response = FileResponse(file, as_attachment=as_attachment, filename=name, content_type=media_type)
    response["X-Content-Type-Options"] = "nosniff"
    return response  # type: ignore[no-any-return]


async def _blocks(file: BinaryIO) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read, thread_sensitive=False)
    while block := await read(_BLOCK_BYTES):
        yield block
