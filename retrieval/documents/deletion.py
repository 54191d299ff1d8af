"""Removes what belongs to deleted documents: files, pictures, recognised text, and references in other rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.dispatch import Signal

from retrieval.documents.recognition.pages import forget_pages
from retrieval.exceptions import FilesUnavailable
from retrieval.models import Document

logger = logging.getLogger(__name__)

# Sent with ``documents`` in the transaction that deletes them, however that is done.
documents_deleted = Signal()


def forget_documents(documents: Sequence[Document]) -> None:
    """Clean up after documents. Call it after their rows are deleted, in the same transaction."""
    documents_deleted.send(sender=Document, documents=documents)
    forget_files([str(document.file.name) for document in documents])
    hashes = {document.content_hash for document in documents if document.file}

    def forget_pictures() -> None:
        kept = set(Document.objects.filter(content_hash__in=hashes).values_list("content_hash", flat=True))
        for content_hash in hashes - kept:
            forget_page_pictures(page_pictures(), content_hash)

    if hashes:
        forget_pages(hashes)
        transaction.on_commit(forget_pictures)


def forget_files(names: Iterable[str | None]) -> None:
    """Delete the stored files after the commit, except those that another document, as in a draft, still uses."""
    forgotten = {name for name in names if name}

    def forget() -> None:
        kept = set(Document.objects.filter(file__in=forgotten).values_list("file", flat=True))
        for name in forgotten - kept:
            try:
                Document.file.field.storage.delete(name)
            except FilesUnavailable:
                # The documents are deleted all the same, and others are still to be told.
                logger.warning("The file %s could not be deleted from its bucket.", name)

    if forgotten:
        transaction.on_commit(forget)


def page_pictures() -> Path:
    """The folder of the cached pictures of pages."""
    return Path(settings.DATA_DIR) / "page-pictures"


def forget_page_pictures(cache: Path, content_hash: str) -> None:
    """Delete the pictures of a file that is no longer used."""
    for kept in cache.glob(f"{content_hash}-*.webp"):
        kept.unlink(missing_ok=True)
