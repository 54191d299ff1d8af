"""The collections whose sources and settings a member of staff may see and manage."""

from __future__ import annotations

from django.contrib.auth.models import User

from core.user_types import AnyUser
from retrieval.models import Collection, CollectionGrant, Document
from retrieval.models.collection import CollectionQuerySet
from retrieval.models.narrowing import readers_for, seen_by


def seen_whole_by(user: AnyUser) -> CollectionQuerySet:
    """The collections that ``user`` may read with all of their documents."""
    hidden = Document.objects.exclude(seen_by(readers_for(user))) if readers_for(user) else Document.objects.none()
    return Collection.objects.readable_by(user).exclude(pk__in=hidden.order_by().values("collection"))


def source_collections(user: AnyUser) -> CollectionQuerySet:
    """The collections whose sources ``user`` may see: a source names all documents that came from it."""
    return seen_whole_by(user).filter(pk__in=Collection.objects.curated_by(user)).in_service()


def entrust(collection: Collection, user: User) -> None:
    """Have whoever made a collection manage it, where nobody else would see it."""
    if not Collection.objects.managed_by(user).filter(pk=collection.pk).exists():
        CollectionGrant.objects.create(collection=collection, user=user, role=CollectionGrant.Role.MANAGER)
