"""The source viewer: a document in its own structure, with the passage that an answer cites in its place."""

from __future__ import annotations

import asyncio
import logging

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils.html import escape
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from retrieval.ingest.formats import View, view_of
from retrieval.models import Document, DocumentText
from retrieval.viewer import originals, pdf_pages
from retrieval.viewer.page import file_of, page_context, page_pictures

logger = logging.getLogger(__name__)

_BUSY_SECONDS = 5
_NO_PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 120"><rect width="700" height="120" fill="#fff"/>'
    '<text x="350" y="66" text-anchor="middle" font-family="sans-serif" font-size="18" fill="#333">{}</text></svg>'
)


@require_GET
@never_cache
def document(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """The text that is being served, with ``?start=&end=`` marked. 404 for what the visitor may not read."""
    if (refusal := _refuse_anonymous(request)) is not None:
        return refusal
    found = _get_document(request, document_id)
    context = {
        "document": found,
        "has_original": bool(found.file),
        "is_pdf": view_of(found.media_type) is View.PRINTED,
        # Never an address that a browser would run.
        "web_address": found.url if found.url.startswith(("https://", "http://")) else "",
    }
    served = DocumentText.objects.filter(document=found).first()
    if served is not None:
        context |= page_context(found, served, request.GET)
    return render(request, "retrieval/document.html", context)


@require_GET
@never_cache
def original(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """The file as it was added, to be saved."""
    refusal = _refuse_anonymous(request)
    return refusal if refusal is not None else originals.download(request, _get_document(request, document_id))


@require_GET
@never_cache
def pdf(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """A PDF file in the browser's own viewer, which opens the page that ``#page=`` names."""
    refusal = _refuse_anonymous(request)
    return refusal if refusal is not None else originals.show_pdf(request, _get_document(request, document_id))


@require_GET
async def page_picture(request: HttpRequest, document_id: int, number: int) -> HttpResponseBase:
    """A page of a PDF file as a picture; one that says so with status 422 when it cannot be drawn, and with 503 and
    Retry-After when too many pages are being drawn. When the visitor leaves, so does the wish to have it drawn.
    """
    try:
        found = await sync_to_async(_find_picture)(request, document_id, number)
        if isinstance(found, HttpResponseBase):
            return found
        source, content_hash = found
        with pdf_pages.draw_picture(source, number, page_pictures(), content_hash) as drawing:
            return _picture_response(await asyncio.shield(asyncio.wrap_future(drawing)))
    except pdf_pages.PageBusy:
        response = _placeholder_response(_("Many pages are being drawn. Try again in a moment."), 503)
        response["Retry-After"] = str(_BUSY_SECONDS)
        return response
    except pdf_pages.PageNotDrawn as error:
        logger.warning("page not drawn", extra={"document": document_id, "page": number, "reason": str(error)})
        return _placeholder_response(_("This page cannot be shown as a picture."), 422)


def _find_picture(
    request: HttpRequest, document_id: int, number: int
) -> HttpResponseBase | tuple[pdf_pages.Source, str]:
    """The picture if it was drawn before, or what it is to be drawn from. Raises: Http404, PageNotDrawn."""
    try:
        if (refusal := _refuse_anonymous(request)) is not None:
            return refusal
        found = _get_document(request, document_id)
        if view_of(found.media_type) is not View.PRINTED:
            raise Http404
        data = pdf_pages.load_kept_picture(number, page_pictures(), found.content_hash)
        return _picture_response(data) if data is not None else (file_of(found), found.content_hash)
    finally:
        # Whoever waits for a picture holds no connection: with a pool, others need it.
        connection.close_if_unusable_or_obsolete()


def _picture_response(data: bytes) -> HttpResponse:
    response = HttpResponse(data, content_type="image/webp")
    # The address changes with the file; whoever loses the right to read keeps what was seen for an hour at most.
    response["Cache-Control"] = "private, max-age=3600"
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _placeholder_response(sentence: str, status: int) -> HttpResponse:
    response = HttpResponse(_NO_PICTURE.format(escape(sentence)), content_type="image/svg+xml", status=status)
    response["Cache-Control"] = "no-store"
    return response


def _refuse_anonymous(request: HttpRequest) -> HttpResponse | None:
    if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    return None


def _get_document(request: HttpRequest, document_id: int) -> Document:
    readable = Document.objects.readable_by(request.user).select_related("collection")
    return get_object_or_404(readable, pk=document_id)
