"""The collections and documents that a reader may ask, to browse and to search by name."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from retrieval.models import Collection, Document

DOCUMENTS_A_PAGE = 50


@require_GET
@never_cache
def library(request: HttpRequest) -> HttpResponseBase:
    """Documents in service that the visitor may read, by title; ``?collection=`` and ``?q=`` narrow them."""
    if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    collections = Collection.objects.readable_by(request.user).in_service()
    documents = Document.objects.readable_by(request.user).filter(collection__in=collections, text__isnull=False)
    counts = dict(documents.order_by().values_list("collection").annotate(Count("pk")))
    wanted = {name: request.GET.get(name, "").replace("\0", "").strip() for name in ("collection", "q")}
    if wanted["collection"]:
        documents = documents.filter(collection__slug=wanted["collection"])
    for word in wanted["q"].split()[:10]:
        documents = documents.filter(Q(title__icontains=word) | Q(source__icontains=word))
    listed = Paginator(documents.select_related("collection"), DOCUMENTS_A_PAGE)
    context = {
        "collections": [(each, counts.get(each.pk, 0)) for each in collections],
        "chosen": next((each for each in collections if each.slug == wanted["collection"]), None),
        "documents": listed.get_page(request.GET.get("page")),
        "wanted": wanted,
    }
    return render(request, "retrieval/library.html", context)
