"""Combine an item's metadata and readers (who may read it) with the metadata of its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.db.models import Q

from retrieval.models import PushedItem, Source, SourceItem
from retrieval.models.source import EVERYBODY


def combine_document_metadata(
    own: Mapping[str, object], of_source: Mapping[str, object], readers: Iterable[str] | None
) -> dict[str, object]:
    """Return the metadata of an item's document.

    Values ``of_source`` replace the item's ``own``, except the groups that may read: these must be in each list of
    groups that ``own``, ``of_source`` and ``readers`` have.
    """
    key = settings.DOCUMENT_GROUPS_KEY
    admitted = [collect_group_names(metadata[key]) for metadata in (own, of_source) if key in metadata]
    if readers is not None:
        admitted.append(set(readers))
    combined = {**own, **of_source}
    return {**combined, key: sorted(set.intersection(*admitted))} if admitted else combined


def combine_item_metadata(item: SourceItem, of_source: Mapping[str, object]) -> dict[str, object]:
    """Return the metadata of an item's document: the source's metadata, and the groups that may read the document."""
    own = {} if item.own_groups is None else {settings.DOCUMENT_GROUPS_KEY: item.own_groups}
    if item.readers is None:
        # If readers are not imported, the source's metadata replace the item's, also for the key that names groups.
        return {**own, **of_source}
    return combine_document_metadata(own, of_source, None if item.readers == EVERYBODY else item.readers)


def collect_group_names(value: object) -> set[str]:
    names: Iterable[object] = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return {name for name in names if isinstance(name, str)}


def restore_metadata_of_items(source: Source, before: Mapping[str, object]) -> None:
    """Restore the items' own readers and metadata in the documents of a source whose metadata changed.

    ``before`` are the source's earlier metadata. Call this after the new metadata were copied to all documents, because
    the copy overwrites the items' values.
    """
    names = {*before, *source.metadata}
    has_some = Q(metadata__has_any_keys=list(names))
    if settings.DOCUMENT_GROUPS_KEY in names:
        has_some |= Q(readers__isnull=False)
        for item in source.items.filter(readers__isnull=False).exclude(name=""):
            _write_metadata(source, item.name, names, combine_item_metadata(item, source.metadata))
    for pushed in source.pushed_items.filter(has_some).exclude(name=""):
        _write_metadata(source, pushed.name, names, combine_pushed_metadata(pushed, source.metadata))


def combine_pushed_metadata(item: PushedItem, of_source: Mapping[str, object]) -> dict[str, object]:
    return combine_document_metadata(item.metadata, of_source, item.readers)


def remove_imported_readers(source: Source) -> None:
    """Remove the readers that were imported from the source. Only the source's metadata then limit its documents."""
    for item in source.items.filter(readers__isnull=False):
        item.readers = None
        if item.name:
            _write_metadata(
                source, item.name, {settings.DOCUMENT_GROUPS_KEY}, combine_item_metadata(item, source.metadata)
            )
    source.items.filter(readers__isnull=False).update(readers=None, own_groups=None)


def _write_metadata(source: Source, name: str, keys: set[str], combined: Mapping[str, Any]) -> None:
    for document in source.own_documents.filter(source=name):
        own = {each: value for each, value in document.metadata.items() if each not in keys}
        metadata = own | {each: value for each, value in combined.items() if each in keys}
        if metadata != document.metadata:
            document.metadata = metadata
            document.save(update_fields=["metadata", "updated_at"])
            document.copy_metadata_to_members()
