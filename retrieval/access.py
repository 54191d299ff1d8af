"""Which passages a search may touch: what the caller may read, and what the caller asked for."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, QuerySet

from retrieval.exceptions import InvalidQuery
from retrieval.models import Collection
from retrieval.types import SearchFilters

Row = TypeVar("Row", bound=Model)


def filters_for(user: object, collection: str = "", **wanted: object) -> SearchFilters:
    """Filters for what ``user`` may read, in one collection or in all of them.

    Raises: InvalidQuery when the named collection does not exist or may not be read (which of the two is not told).
    """
    readable = Collection.objects.readable_by(user)
    if collection:
        readable = readable.filter(slug=collection)
    ids = tuple(readable.order_by("pk").values_list("pk", flat=True))
    if collection and not ids:
        raise InvalidQuery(f"There is no collection named {collection!r}.")
    return SearchFilters(collections=ids, **wanted)  # type: ignore[arg-type]


def everything(collection: str = "") -> SearchFilters:
    """Filters for whoever runs commands, and so may read every collection, or one by name. Raises: InvalidQuery."""
    rows = Collection.objects.filter(slug=collection) if collection else Collection.objects.all()
    ids = tuple(rows.order_by("pk").values_list("pk", flat=True))
    if collection and not ids:
        raise InvalidQuery(f"There is no collection named {collection!r}.")
    return SearchFilters(collections=ids)


def restrict(rows: QuerySet[Row], filters: SearchFilters) -> QuerySet[Row]:
    """``rows`` (chunks or their embeddings) whose document passes the filters; collections are the caller's part."""
    if filters.documents:
        rows = rows.filter(document__in=filters.documents)
    if filters.languages:
        rows = rows.filter(document__language__in=filters.languages)
    if filters.metadata:
        rows = rows.filter(document__metadata__contains=dict(filters.metadata))
    return rows
