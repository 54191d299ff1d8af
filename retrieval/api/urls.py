from __future__ import annotations

from django.urls import include, path, register_converter
from rest_framework.routers import SimpleRouter

from retrieval.api.endpoints import CollectionsView, DocumentViewSet, FiltersView, SearchView
from retrieval.api.push_endpoints import ExternalIdConverter, PushBatchView, PushedDocumentView

register_converter(ExternalIdConverter, "external_id")
BY_SOURCE = "documents/by-source/<int:source_id>"
router = SimpleRouter(use_regex_path=False)
router.register("documents", DocumentViewSet, basename="document")

app_name = "retrieval_api"
urlpatterns = [
    path("search/", SearchView.as_view(), name="search"),
    path("collections/", CollectionsView.as_view(), name="collections"),
    path("filters/", FiltersView.as_view(), name="filters"),
    path(f"{BY_SOURCE}/batch", PushBatchView.as_view(), {"external_id": "batch"}, name="push_batch"),
    path(f"{BY_SOURCE}/<external_id:external_id>", PushedDocumentView.as_view(), name="pushed_document"),
    path("", include(router.urls)),
]
