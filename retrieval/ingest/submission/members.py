"""The files of archives and mails as documents of their own, kept as their parent's file has them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from retrieval.drafts.editing import changing
from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.types import Member
from retrieval.ingest.submission import submit
from retrieval.models import Document

MOST_LEVELS = 3


def submit_members(document: Document, members: Sequence[Member]) -> None:
    """Submit each member that is new or has changed. The document must be leased by this process.

    Whoever is interrupted begins again: what was submitted before is then unchanged.
    Raises: LeaseLost; DocumentRejected for archives in archives in archives, and a member whose place is taken.
    """
    if members and _count_levels(document) >= MOST_LEVELS:
        raise DocumentRejected(
            f"{document.source} lies in {MOST_LEVELS} archives or mails: unpack the outer ones, and upload it itself."
        )
    held = dict(Document.objects.filter(parent=document).values_list("source", "content_hash"))
    for member in members:
        source = member_source(document, member.name)
        if held.get(source) == hashlib.sha256(member.data).hexdigest():
            continue
        # In the order of every upload, so that none waits for this and this for it.
        with changing(document.collection_id):
            document.lock()
            submit(
                document.collection,
                source,
                member.data,
                language=document.language,
                metadata=document.metadata,
                parent=document,
            )


def remove_members(document: Document, members: Sequence[Member]) -> None:
    """Delete the members that are no longer in the document's file. Must run inside a transaction."""
    kept = [member_source(document, member.name) for member in members]
    Document.objects.filter(parent=document).exclude(source__in=kept).delete()


def member_source(document: Document, name: str) -> str:
    """Raises: DocumentRejected for a path that is too long to be kept."""
    source = f"{document.source}/{name}"
    if len(source) > 1_000:
        raise DocumentRejected(f"{document.source} holds files whose names are too long: shorten its own name.")
    return source


def _count_levels(document: Document) -> int:
    levels = 1
    parent = document.parent
    while parent is not None:
        levels, parent = levels + 1, parent.parent
    return levels
