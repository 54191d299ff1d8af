"""Documents are changed while no draft of their collection begins, and none is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from retrieval.editing import require_editable
from retrieval.models import Collection


@contextmanager
def changing(*collection_ids: int) -> Iterator[None]:
    """A transaction in which documents of the collections may be changed; it holds the collections' rows.

    Raises: DocumentRejected, before anything is done, when documents of one of them may not be changed.
    """
    with transaction.atomic():
        # In one order, so that two that change several collections never wait for each other.
        rows = Collection.objects.select_for_update(no_key=True).filter(pk__in=collection_ids)
        for collection in rows.order_by("pk"):
            require_editable(collection)
        yield
