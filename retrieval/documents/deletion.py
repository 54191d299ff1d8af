from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings
from django.db import transaction

from core.exceptions import FilesUnavailable
from retrieval.documents.recognition.pages import forget_pages
from retrieval.models import Document

logger = logging.getLogger(__name__)


def delete_document_files(document: Document) -> None:
    """Delete the document's file, page images and recognised text. Call it in the transaction that deletes the row."""
    delete_unused_files([document.file.name])
    if document.file:
        content_hash = document.content_hash
        forget_pages([content_hash])

        def forget_pictures() -> None:
            if not Document.objects.filter(content_hash=content_hash).exists():
                forget_page_pictures(get_page_picture_folder(), content_hash)

        transaction.on_commit(forget_pictures)


def delete_unused_files(names: Iterable[str | None]) -> None:
    """Delete the stored files after the commit. A file that another document uses is kept."""
    forgotten = {name for name in names if name}

    def forget() -> None:
        kept = set(Document.objects.filter(file__in=forgotten).values_list("file", flat=True))
        for name in forgotten - kept:
            try:
                Document.file.field.storage.delete(name)
            except FilesUnavailable:
                logger.warning("The file %s could not be deleted from its bucket.", name)

    if forgotten:
        transaction.on_commit(forget)


def get_page_picture_folder() -> Path:
    return Path(settings.DATA_DIR) / "page-pictures"


def forget_page_pictures(cache: Path, content_hash: str) -> None:
    for kept in cache.glob(f"{content_hash}-*.webp"):
        kept.unlink(missing_ok=True)
