from __future__ import annotations

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from retrieval.api.endpoints import CollectionsView, DocumentViewSet, FiltersView, SearchView

router = SimpleRouter(use_regex_path=False)
router.register("documents", DocumentViewSet, basename="document")

app_name = "retrieval_api"
urlpatterns = [
    path("search/", SearchView.as_view(), name="search"),
    path("collections/", CollectionsView.as_view(), name="collections"),
    path("filters/", FiltersView.as_view(), name="filters"),
    path("", include(router.urls)),
]
