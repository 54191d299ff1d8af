"""Views of the list of documents, of a document with its cited passage, and of original files."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import wraps
from pathlib import PurePath
from typing import Any, BinaryIO
from urllib.parse import urlencode, urlsplit

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.handlers.asgi import ASGIRequest
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import Resolver404, resolve
from django.utils.html import escape
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.database import release_connections
from core.users import may_debug
from retrieval.documents.deletion import get_page_picture_folder
from retrieval.documents.file_icons import choose_icon
from retrieval.documents.formats import ViewerLayout, get_viewer_layout
from retrieval.media_types import PDF
from retrieval.models import Collection, Document, DocumentText, Table
from retrieval.rights.chosen_filters import (
    build_form,
    build_query_parameters,
    build_search_restrictions,
    list_chips,
    read_chosen_filters,
    remove_chip,
)
from retrieval.rights.offered_filters import list_offered_filters
from retrieval.rights.search_filters import list_matching_documents
from retrieval.types import SearchFilters
from retrieval.viewer import pdf_pages
from retrieval.viewer.facts import list_metadata_facts
from retrieval.viewer.page import build_viewer_context, find_document_file, select_parts_around_passage
from retrieval.viewer.passage_borders import PARAMETER, find_borders
from retrieval.viewer.table_page import build_table_context

logger = logging.getLogger(__name__)

DOCUMENTS_A_PAGE = 50
_BUSY_SECONDS = 5
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+")
_BLOCK_BYTES = 256 * 2**10
_VIEWER_POLICY = (
    "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_NO_PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 120"><rect width="700" height="120" fill="#fff"/>'
    '<text x="350" y="66" text-anchor="middle" font-family="sans-serif" font-size="18" fill="#333">{}</text></svg>'
)


def _refuse_anonymous(request: HttpRequest) -> HttpResponse | None:
    if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    return None


def _restrict_to_readers(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @require_safe
    @never_cache
    @wraps(view)
    def guarded_view(request: HttpRequest, **arguments: int) -> HttpResponseBase:
        return _refuse_anonymous(request) or view(request, **arguments)

    return guarded_view


@_restrict_to_readers
def library(request: HttpRequest) -> HttpResponseBase:
    collections = Collection.objects.readable_by(request.user).in_service()
    documents = Document.objects.readable_by(request.user).filter(collection__in=collections, text__isnull=False)
    counts = dict(documents.order_by().values_list("collection").annotate(Count("pk")))
    wanted = {name: request.GET.get(name, "").replace("\0", "").strip() for name in ("collection", "q")}
    if wanted["collection"]:
        documents = documents.filter(collection__slug=wanted["collection"])
    for word in wanted["q"].split()[:10]:
        documents = documents.filter(Q(title__icontains=word) | Q(source__icontains=word))
    offered = list_offered_filters(request.user, wanted["collection"])
    chosen, problem = read_chosen_filters(request.GET, offered)
    if chosen:
        within = tuple(each.pk for each in collections)
        narrowed = SearchFilters(collections=within, readers=(), **build_search_restrictions(chosen))
        documents = documents.filter(pk__in=list_matching_documents(narrowed).order_by().values("pk"))
    chips = list_chips(chosen, offered)
    kept = {name: value for name, value in wanted.items() if value}
    listed = Paginator(documents.select_related("collection"), DOCUMENTS_A_PAGE).get_page(request.GET.get("page"))
    context = {
        "collections": [(each, counts.get(each.pk, 0)) for each in collections],
        "chosen": next((each for each in collections if each.slug == wanted["collection"]), None),
        "documents": listed,
        "rows": [(document, choose_icon(document.media_type)) for document in listed],
        "wanted": wanted,
        "filter_fields": build_form(offered, chosen),
        "filter_chips": [(chip, _build_query_string(kept, remove_chip(chosen, chip.token))) for chip in chips],
        "filter_problem": problem,
        "query": _build_query_string(kept, chosen),
        "asked": _build_query_string({"collection": wanted["collection"]}, chosen),
    }
    return render(request, "retrieval/library.html", context)


def _build_query_string(wanted: Mapping[str, str], chosen: Mapping[str, Any]) -> str:
    query = build_query_parameters(chosen)
    query.update(wanted)
    return query.urlencode()


@_restrict_to_readers
def document(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """Show a document's text. ``?start=&end=`` marks a passage; ``?sheet`` shows only the text around it.

    ``?passages`` shows where passages begin and end, to those who may see this. Raises: Http404 if the visitor may not
    read the document.
    """
    found = _get_document(request, document_id)
    context = {
        "document": found,
        "came_from": _find_referring_conversation(request),
        "facts": list_metadata_facts(found),
        "has_original": bool(found.file),
        "is_pdf": found.media_type == PDF,
        # Other schemes, such as javascript:, could run code.
        "web_address": found.url if found.url.startswith(("https://", "http://")) else "",
    }
    readable = Document.objects.readable_by(request.user)
    context["members"] = list(readable.filter(parent=found))
    context["parent"] = readable.filter(members=found).first()
    served = DocumentText.objects.filter(document=found).first()
    parts: Sequence[str] = ()
    if served is not None:
        borders = find_borders(found, request.user) if PARAMETER in request.GET and "sheet" not in request.GET else None
        shown = build_viewer_context(found, served, request.GET, borders)
        if may_debug(request.user):
            context["borders"] = borders
            context["borders_href"] = _build_borders_toggle_link(shown["marked"], is_shown=borders is not None)
        context.update(shown)
        parts = shown["parts"]
    if "sheet" in request.GET:
        near = select_parts_around_passage(parts)
        return render(request, "retrieval/_sheet.html", {**context, "near": near})
    return render(request, "retrieval/document.html", context)


def _build_borders_toggle_link(marked: tuple[int, int] | None, *, is_shown: bool) -> str:
    query: dict[str, int] = {} if is_shown else {PARAMETER: 1}
    if marked is not None:
        query |= {"start": marked[0], "end": marked[1]}
    return f"?{urlencode(query)}{'#passage' if marked else ''}"


@_restrict_to_readers
def table(request: HttpRequest, document_id: int, number: int) -> HttpResponseBase:
    found = _get_document(request, document_id)
    asked = get_object_or_404(Table, document=found, ordinal=number)
    context = {
        "document": found,
        "came_from": _find_referring_conversation(request),
        **build_table_context(asked, request.GET),
    }
    return render(request, "retrieval/table.html", context)


@_restrict_to_readers
def download_original(request: HttpRequest, document_id: int) -> HttpResponseBase:
    return download(request, _get_document(request, document_id))


@_restrict_to_readers
def pdf(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """Show a PDF file in the browser's viewer. Raises: Http404 if the file is missing or not a PDF."""
    found = _get_document(request, document_id)
    if found.media_type != PDF:
        raise Http404
    file = _open_file(found)
    is_pdf = file.read(1024).lstrip().startswith(b"%PDF-")
    file.seek(0)
    if not is_pdf:
        file.close()
        raise Http404
    response = _send_file(request, found, file, PDF, as_attachment=False)
    response["Content-Security-Policy"] = _VIEWER_POLICY
    return response


@require_safe
def page_picture(request: HttpRequest, document_id: int, number: int) -> HttpResponseBase:
    """Send the picture of a page.

    Errors are pictures too, with status 422 if the page cannot be drawn, and 503 with Retry-After if too many pages are
    being drawn.
    """
    if refusal := _refuse_anonymous(request):
        return refusal
    found = _get_document(request, document_id)
    if get_viewer_layout(found.media_type) is not ViewerLayout.PRINTED:
        raise Http404
    try:
        data = pdf_pages.load_kept_picture(number, get_page_picture_folder(), found.content_hash)
        if data is None:
            source = find_document_file(found)
            # The database connection is not needed while this request waits.
            release_connections()
            data = pdf_pages.draw_picture(source, number, get_page_picture_folder(), found.content_hash)
        response = HttpResponse(data, content_type="image/webp")
        # The browser may show the picture for an hour after a user has lost the right to read it.
        response["Cache-Control"] = "private, max-age=3600"
        response["X-Content-Type-Options"] = "nosniff"
        return response
    except pdf_pages.TooManyDrawings:
        response = _placeholder_response(_("Many pages are being drawn. Try again in a moment."), 503)
        response["Retry-After"] = str(_BUSY_SECONDS)
        return response
    except pdf_pages.PageNotDrawn as error:
        logger.warning("page not drawn", extra={"document": document_id, "page": number, "reason": str(error)})
        return _placeholder_response(_("This page cannot be shown as a picture."), 422)


def _placeholder_response(sentence: str, status: int) -> HttpResponse:
    response = HttpResponse(_NO_PICTURE.format(escape(sentence)), content_type="image/svg+xml", status=status)
    response["Cache-Control"] = "no-store"
    return response


def _find_referring_conversation(request: HttpRequest) -> str:
    try:
        before = urlsplit(request.headers.get("Referer", ""))
        is_conversation = resolve(before.path).view_name in ("chat:conversation", "chat:shared")
    except (ValueError, Resolver404):
        return ""
    return before.path if is_conversation and before.netloc == request.get_host() else ""


def _get_document(request: HttpRequest, document_id: int) -> Document:
    readable = Document.objects.readable_by(request.user).select_related("collection")
    return get_object_or_404(readable, pk=document_id)


def download(request: HttpRequest, document: Document) -> HttpResponseBase:
    """Send the file as a download, because its untrusted content must not run in the browser.

    Raises: Http404 if the file is missing.
    """
    media_type = document.media_type if _MEDIA_TYPE.fullmatch(document.media_type) else "application/octet-stream"
    return _send_file(request, document, _open_file(document), media_type, as_attachment=True)


def _open_file(document: Document) -> BinaryIO:
    try:
        return document.file.open("rb")  # type: ignore[return-value]
    except (ValueError, FileNotFoundError) as error:
        raise Http404 from error


def _send_file(
    request: HttpRequest, document: Document, file: BinaryIO, media_type: str, *, as_attachment: bool
) -> HttpResponseBase:
    name = PurePath(document.source.replace("\\", "/")).name or f"document-{document.pk}"
    response: Any
    if isinstance(request, ASGIRequest):
        # An ASGI server would read a whole FileResponse before it sends anything.
        response = StreamingHttpResponse(_read_blocks(file), content_type=media_type)
        response._resource_closers.append(file.close)
        response["Content-Length"] = document.file.size
        response["Content-Disposition"] = content_disposition_header(as_attachment, name)
    else:
        response = FileResponse(file, as_attachment=as_attachment, filename=name, content_type=media_type)
    response["X-Content-Type-Options"] = "nosniff"
    return response  # type: ignore[no-any-return]


async def _read_blocks(file: BinaryIO) -> AsyncIterator[bytes]:
    read = sync_to_async(file.read, thread_sensitive=False)
    while block := await read(_BLOCK_BYTES):
        yield block
