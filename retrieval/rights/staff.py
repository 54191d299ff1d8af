"""List the collections that staff may see and manage."""

from __future__ import annotations

from django.contrib.auth.models import User

from core.user_types import AnyUser
from retrieval.models import Collection, CollectionGrant, Document
from retrieval.models.collection import CollectionQuerySet
from retrieval.models.narrowing import build_readable_condition, build_reader_rights


def list_fully_readable_collections(user: AnyUser) -> CollectionQuerySet:
    """Return the collections in which ``user`` may read every document."""
    hidden = (
        Document.objects.exclude(build_readable_condition(build_reader_rights(user)))
        if build_reader_rights(user)
        else Document.objects.none()
    )
    return Collection.objects.readable_by(user).exclude(pk__in=hidden.order_by().values("collection"))


def list_source_collections(user: AnyUser) -> CollectionQuerySet:
    """Return the collections whose sources ``user`` may see: those that ``user`` curates and may read completely."""
    return list_fully_readable_collections(user).filter(pk__in=Collection.objects.curated_by(user)).in_service()


def grant_management(collection: Collection, user: User) -> None:
    """Make ``user`` a manager of a new collection. A superuser needs no grant, and gets none."""
    if not user.is_superuser:
        manager = {"role": CollectionGrant.Role.MANAGER}
        CollectionGrant.objects.update_or_create(collection=collection, user=user, defaults=manager)
