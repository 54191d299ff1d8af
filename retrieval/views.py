"""The source viewer: a document's text, with the passage that an answer cites in its place."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from retrieval import reading
from retrieval.ingest.extraction.detection import CSV, DOCX, HTML, JSON, JSON_LINES, MARKDOWN, PDF, PLAIN, RST, TSV
from retrieval.models import Document, DocumentText
from retrieval.reading import Section

_PROSE = frozenset({"", MARKDOWN, HTML, PLAIN, RST, PDF, DOCX})
_TABULAR = frozenset({CSV, TSV, JSON, JSON_LINES})
_HARD_WRAPPED = frozenset({PDF, PLAIN})
_OUTLINE_ENTRIES = 150
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+")


@require_GET
@never_cache
def document(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """The text that is being served, with ``?start=&end=`` marked. 404 for what the visitor may not read."""
    if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    found = _readable(request, document_id)
    served = DocumentText.objects.filter(document=found).first()
    if served is None:
        return render(request, "retrieval/document.html", {"document": found, "has_original": bool(found.file)})
    return _reader(request, found, served)


@require_GET
@never_cache
def original(request: HttpRequest, document_id: int) -> HttpResponseBase:
    """The file as it was added. It is always saved and never shown: it could hold anything."""
    if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    found = _readable(request, document_id)
    try:
        file = found.file.open("rb")
    except (ValueError, FileNotFoundError) as error:
        raise Http404 from error
    media_type = found.media_type if _MEDIA_TYPE.fullmatch(found.media_type) else "application/octet-stream"
    name = PurePath(found.source.replace("\\", "/")).name or f"document-{found.pk}"
    response = FileResponse(file, as_attachment=True, filename=name, content_type=media_type)
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _readable(request: HttpRequest, document_id: int) -> Document:
    readable = Document.objects.readable_by(request.user).select_related("collection")
    return get_object_or_404(readable, pk=document_id)


def _reader(request: HttpRequest, found: Document, served: DocumentText) -> HttpResponse:
    text = served.text
    marked = reading.passage(text, request.GET.get("start"), request.GET.get("end"))
    is_code = found.media_type not in _PROSE and found.media_type not in _TABULAR
    sections = [Section(start, level, title) for start, level, title in served.sections]
    context: dict[str, Any] = {
        "document": found,
        "has_original": bool(found.file),
        # Never an address that a browser would run.
        "web_address": found.url if found.url.startswith(("https://", "http://")) else "",
        "has_text": True,
        "marked": marked,
        "is_code": is_code,
        "is_tabular": found.media_type in _TABULAR,
        "outline": _outline(sections, marked),
    }
    if marked:
        context |= {
            "above": reading.headings_above(sections, marked[0]),
            "page": reading.page_of(served.pages, marked[0]),
            "first_line": reading.line_of(text, marked[0]) if is_code else None,
        }
    if is_code:
        start, end = marked or (0, 0)
        context |= {
            "before": text[:start],
            "passage": text[start:end],
            "after": text[end:],
            "line_numbers": "\n".join(map(str, range(1, text.rstrip("\n").count("\n") + 2))),
        }
    else:
        if found.media_type in _HARD_WRAPPED:
            text = reading.unwrapped(text, sections)
        context["parts"] = reading.parts(reading.pieces(text, pages=served.pages, sections=sections, marked=marked))
    return render(request, "retrieval/document.html", context)


def _outline(sections: list[Section], marked: tuple[int, int] | None) -> list[Section]:
    """The headings to navigate by: as many levels as fit; the one the passage stands under is current."""
    if not sections:
        return []
    for deepest in range(max(section.level for section in sections), 0, -1):
        shown = [section for section in sections if section.level <= deepest]
        if len(shown) <= _OUTLINE_ENTRIES:
            break
    shown = shown[:_OUTLINE_ENTRIES]
    above = reading.headings_above(shown, marked[0]) if marked else []
    current = above[-1].start if above else None
    top = min((section.level for section in shown), default=1)
    return [replace(s, level=s.level - top + 1, is_current=s.start == current) for s in shown]
