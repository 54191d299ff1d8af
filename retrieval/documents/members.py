"""Submit the files inside an archive or a mail as documents of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from retrieval.documents.drafts.editing import lock_collections_for_change
from retrieval.documents.submission import submit
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document
from retrieval.text.extracted import MemberFile

if TYPE_CHECKING:
    pass


MOST_LEVELS = 3


def submit_member_files(document: Document, members: Sequence[MemberFile]) -> None:
    """Submit each new or changed file in an archive or mail (``document``).

    This process must have the lease of ``document``. Raises: LeaseLost; DocumentRejected for archives that are nested
    too deeply, or a file with the name of another document.
    """
    levels, parent = 1, document.parent
    while parent is not None:
        levels, parent = levels + 1, parent.parent
    if members and levels >= MOST_LEVELS:
        raise DocumentRejected(
            f"{document.source} lies in {MOST_LEVELS} archives or mails: unpack the outer ones, and upload it itself."
        )
    held = dict(Document.objects.filter(parent=document).values_list("source", "content_hash"))
    for member in members:
        source = build_member_source(document, member.name)
        if held.get(source) == hashlib.sha256(member.data).hexdigest():
            continue
        with lock_collections_for_change(document.collection_id):
            document.lock()
            # An admin may have changed the metadata, which contain rights, since the document was loaded.
            metadata = Document.objects.values_list("metadata", flat=True).get(pk=document.pk)
            submit(
                document.collection,
                source,
                member.data,
                language=document.language,
                metadata=metadata,
                parent=document,
            )


def delete_missing_member_files(document: Document, members: Sequence[MemberFile]) -> None:
    """Delete the documents of files that are no longer in the archive or mail. Call it in a transaction."""
    kept = [build_member_source(document, member.name) for member in members]
    Document.objects.filter(parent=document).exclude(source__in=kept).delete()


def build_member_source(document: Document, name: str) -> str:
    """Return the document source for a file in an archive. Raises: DocumentRejected for a source that is too long."""
    source = f"{document.source}/{name}"
    if len(source) > 1_000:
        raise DocumentRejected(f"{document.source} holds files whose names are too long: shorten its own name.")
    return source
