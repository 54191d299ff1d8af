"""Decide whether a collection's documents may be changed directly, or only in a draft (an unpublished copy)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.utils.translation import gettext as _t

from retrieval import gates
from retrieval.exceptions import DocumentRejected
from retrieval.models import Collection, Draft


def find_draft(working_copy: Collection) -> Draft | None:
    return Draft.objects.filter(working_copy=working_copy).first()


def find_reason_not_to_change(collection: Collection) -> str:
    """Return why the collection's documents may not be changed now, as a sentence; empty if they may be changed."""
    draft = find_draft(collection)
    if draft is not None:
        if draft.status == Draft.Status.OPEN:
            return ""
        names = {"collection": collection, "status": draft.get_status_display()}
        return _t("The documents of %(collection)s cannot be changed now: it is %(status)s.") % names
    draft = collection.drafts.filter_open().select_related("working_copy").first()
    if draft is not None:
        names = {"collection": collection, "draft": draft.working_copy}
        return _t("%(collection)s is changed in its draft: choose %(draft)s instead.") % names
    if gates.is_changeable_only_in_drafts(collection):
        return _t("%s has a gate, so it can be changed in drafts only. Start a draft first.") % collection
    return ""


def find_reason_not_to_add(collection: Collection) -> str:
    """Return why no source may add documents to the collection now, as a sentence; empty if a source may."""
    reason = find_reason_not_to_change(collection)
    if not reason or find_draft(collection) is not None:
        return reason
    if collection.drafts.filter_open().exists():
        return _t("%s has a draft. Its sources wait until the draft is published or discarded.") % collection
    return _t("%s has a gate, so its documents change in drafts only, and no source can bring any.") % collection


@contextmanager
def lock_collections_for_change(*collection_ids: int) -> Iterator[None]:
    """Lock these collections, so that no draft of them can begin or be published during the transaction.

    Raises: DocumentRejected if the documents of a collection may not be changed.
    """
    with transaction.atomic():
        rows = Collection.objects.select_for_update(no_key=True).filter(pk__in=collection_ids)
        for collection in rows.order_by("pk"):
            if reason := find_reason_not_to_change(collection):
                raise DocumentRejected(reason)
        yield
