"""Combine the metadata and readers of a pushed item with those of its source."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.db.models import Q

from retrieval.models import PushedItem, Source


def combine_metadata(item: PushedItem, of_source: dict[str, object]) -> dict[str, object]:
    """Return the metadata of an item's document.

    The source's own win. Groups are those that the item's metadata, its readers and the source name alike: none of them
    admits anyone whom another leaves out.
    """
    key = settings.DOCUMENT_GROUPS_KEY
    admitted = [_names_in(metadata[key]) for metadata in (item.metadata, of_source) if key in metadata]
    if item.readers is not None:
        admitted.append(set(item.readers))
    combined = {**item.metadata, **of_source}
    return {**combined, key: sorted(set.intersection(*admitted))} if admitted else combined


def _names_in(value: object) -> set[str]:
    names: Iterable[object] = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return {name for name in names if isinstance(name, str)}


def share_source_metadata(source: Source, before: dict[str, object]) -> None:
    """Combine the source's changed metadata with those of the items that have some of the same names.

    The caller has given the source's metadata to all documents.
    """
    names = {*before, *source.metadata}
    has_some = Q(metadata__has_any_keys=list(names))
    if settings.DOCUMENT_GROUPS_KEY in names:
        has_some |= Q(readers__isnull=False)
    for item in source.pushed_items.filter(has_some).exclude(name=""):
        for document in source.own_documents.filter(source=item.name):
            own = {name: value for name, value in document.metadata.items() if name not in names}
            combined = combine_metadata(item, source.metadata)
            document.metadata = own | {name: value for name, value in combined.items() if name in names}
            document.save(update_fields=["metadata", "updated_at"])
            document.share_metadata()
