"""Rights in the admin: staff meet the rows of collections that they may curate, and no others."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from retrieval.models import Collection, CollectionGrant
from retrieval.models.collection import CollectionQuerySet, is_superuser
from retrieval.rights import seen_whole_by


class CuratedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Rows of collections that the user may curate. Others are not there, as for one who guesses their numbers."""

    collection_path = "collection"

    def open_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return Collection.objects.curated_by(request.user)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        if is_superuser(request.user):
            return rows
        return rows.filter(**{f"{self.collection_path}__in": self.open_collections(request)})


class WholeCollectionAdmin(CuratedAdmin):
    """Rows that tell of any document of their collection: for those who may read all of them."""

    def open_collections(self, request: HttpRequest) -> CollectionQuerySet:
        return seen_whole_by(request.user)


class CollectionFilter(admin.RelatedFieldListFilter):
    """By one of the collections that the user may read; their names are not for everybody."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        readable = Collection.objects.readable_by(request.user).values("pk")
        choices: list[tuple[str, Any]] = field.get_choices(include_blank=False, limit_choices_to={"pk__in": readable})
        return choices

    def has_output(self) -> bool:
        """Also with one collection to choose: the addresses that other pages lead to would be ignored."""
        return True


class OpenRowsFilter(admin.RelatedOnlyFieldListFilter):
    """By what the rows that the user sees point at."""

    def has_output(self) -> bool:
        return True


class GrantForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = CollectionGrant
        fields = ["group", "user", "role"]

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if cleaned and bool(cleaned.get("group")) == bool(cleaned.get("user")):
            raise ValidationError(_("Choose a group or a user, not both."))
        return cleaned


class GrantInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    """Who may do what, for those who may change the collection."""

    model = CollectionGrant
    form = GrantForm
    extra = 0
    fields = ["group", "user", "role"]
    verbose_name_plural = _("who may do what besides")

    def get_queryset(self, request: HttpRequest) -> QuerySet[CollectionGrant]:
        # Django's own asks for a permission that no collection needs to know of.
        return CollectionGrant.objects.select_related("group", "user")

    def has_view_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        return self.has_change_permission(request, obj)

    def has_add_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        return self.has_change_permission(request, obj)

    def has_change_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        return may_manage(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        return self.has_change_permission(request, obj)


def may_manage(request: HttpRequest, collection: Collection | None = None) -> bool:
    """Whether the user may change the collection's settings and grants: by a grant as its manager, or, where staff need
    no grant, by the permission to change collections.
    """
    has_permission = request.user.has_perm("retrieval.change_collection")
    if collection is None or collection.pk is None:
        return has_permission
    managed = Collection.objects.filter(pk=collection.pk)
    if has_permission:
        return managed.managed_by(request.user).exists()
    return managed.granted_to(request.user, CollectionGrant.Role.MANAGER).exists()
