"""The metadata that a source gives to all its documents, and to what came in them."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection, transaction

from retrieval.drafts.editing import changing
from retrieval.models import Source

# Keys of a document's own stay.
_GIVE = """
    WITH RECURSIVE family AS (
        SELECT id FROM retrieval_document WHERE origin_id = %s AND collection_id = %s
        UNION ALL
        SELECT member.id FROM retrieval_document AS member JOIN family ON member.parent_id = family.id
    )
    UPDATE retrieval_document AS document
    SET metadata = (document.metadata - %s::text[]) || %s::jsonb, updated_at = now()
    FROM family WHERE document.id = family.id
"""


def save_source(source: Source) -> None:
    """Save the source, and give its documents its metadata if they have changed.

    Raises: DocumentRejected when the collection's documents may not be changed.
    """
    with transaction.atomic():
        is_new = source.pk is None
        before = current_metadata(source)
        source.save()
        if is_new or before == source.metadata:
            return
        with changing(source.collection_id), connection.cursor() as cursor:
            cursor.execute(_GIVE, (source.pk, source.collection_id, list(before), json.dumps(source.metadata)))


def current_metadata(source: Source) -> dict[str, Any]:
    """As they are stored, and stay until the transaction ends: what is added meanwhile gets them all the same."""
    rows = Source.objects.select_for_update(no_key=True).filter(pk=source.pk)
    return rows.values_list("metadata", flat=True).first() or {}
