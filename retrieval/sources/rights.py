"""Whose sources somebody meets."""

from __future__ import annotations

from typing import Any

from retrieval.models import Collection
from retrieval.models.collection import CollectionQuerySet
from retrieval.rights.access import seen_whole_by


def open_collections(user: Any) -> CollectionQuerySet:
    """The collections whose sources ``user`` may see: a source tells of any document that came from it."""
    return seen_whole_by(user).filter(pk__in=Collection.objects.curated_by(user)).in_service()
