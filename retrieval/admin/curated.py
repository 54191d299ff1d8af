from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from core.users import is_superuser
from retrieval.models import Collection
from retrieval.models.collection import CollectionQuerySet
from retrieval.rights.staff import list_fully_readable_collections

if TYPE_CHECKING:
    pass


class CuratedRowsAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Base class for admin pages of rows in collections that the user may curate."""

    collection_path = "collection"

    def list_permitted_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return Collection.objects.curated_by(request.user)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        if is_superuser(request.user):
            return rows
        return rows.filter(**{f"{self.collection_path}__in": self.list_permitted_collections(request)})


class FullyReadableRowsAdmin(CuratedRowsAdmin):
    """Base class for admin pages of rows that may reveal any document of a collection.

    A user sees a row only if the user may read all documents of its collection.
    """

    def list_permitted_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return list_fully_readable_collections(request.user)


class CollectionFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        readable = Collection.objects.readable_by(request.user).values("pk")
        choices: list[tuple[str, Any]] = field.get_choices(include_blank=False, limit_choices_to={"pk__in": readable})
        return choices

    def has_output(self) -> bool:
        """Return True, so that links with this filter work even if there is only one collection.

        Django hides and ignores a filter without output. Its own filters have output only if they have several choices.
        """
        return True
