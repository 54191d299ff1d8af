from __future__ import annotations

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from retrieval.models import Collection, CollectionGrant


class GrantInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    model = CollectionGrant
    extra = 0
    fields = ["group", "user", "role"]
    verbose_name_plural = _("access of people and groups")

    def get_queryset(self, request: HttpRequest) -> QuerySet[CollectionGrant]:
        # The default queryset is empty for users who may manage only some collections.
        return CollectionGrant.objects.select_related("group", "user")

    def has_change_permission(self, request: HttpRequest, obj: Collection | None = None) -> bool:
        return may_manage(request, obj)

    has_view_permission = has_add_permission = has_delete_permission = has_change_permission


def list_editors_without_admin_access(collection: Collection) -> list[str]:
    changing = collection.grants.exclude(role=CollectionGrant.Role.READER)
    granted = get_user_model().objects.filter(is_active=True, is_staff=False, collection_grants__in=changing)
    return [user.get_username() for user in granted.order_by("username")]


def may_manage(request: HttpRequest, collection: Collection | None = None) -> bool:
    """Return whether the user may change the collection's settings and grants."""
    has_permission = request.user.has_perm("retrieval.change_collection")
    if collection is None or collection.pk is None:
        return has_permission
    managed = Collection.objects.filter(pk=collection.pk)
    if has_permission:
        return managed.managed_by(request.user).exists()
    return managed.granted_to(request.user, CollectionGrant.Role.MANAGER).exists()
