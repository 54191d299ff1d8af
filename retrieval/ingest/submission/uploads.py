"""Files that people hand in, by API or in the admin."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from retrieval.exceptions import DocumentRejected
from retrieval.ingest import formats, submission
from retrieval.models import Document

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.db.models import QuerySet

    from retrieval.models import Collection


def read_upload(upload: UploadedFile[Any], source: str) -> bytes:
    """The file's bytes, if it can be a document at all.

    What can be told without reading the text is told now, while the person is there; the rest stands on the document
    afterwards. Raises: DocumentRejected, with a sentence that names the file.
    """
    # Looked at before the file is brought into memory.
    submission.check_size(source, upload.size or 0)
    data: bytes = upload.read()
    if not data:
        raise DocumentRejected(f"{source} is empty: check the file and upload it again.")
    formats.detect(data, source, upload.content_type or "")
    return data


def submit_upload(
    collection: Collection,
    upload: UploadedFile[Any],
    *,
    source: str = "",
    title: str = "",
    url: str = "",
    language: str = "",
    metadata: dict[str, object] | None = None,
    may_replace: bool = True,
    known: QuerySet[Document] | None = None,
) -> submission.Submission:
    """Submit an uploaded file, under its own name unless ``source`` gives another.

    Raises: DocumentRejected; without ``may_replace`` also for a source that the collection has already; with ``known``,
    the documents that may be named, also for a file that one of them in the collection has, under another name.
    """
    source = source or upload.name or ""
    if not may_replace and Document.objects.filter(collection=collection, source=source).exists():
        raise DocumentRejected(f"{source} is there already, and your account may not change documents.")
    data = read_upload(upload, source)
    if known is not None:
        same = known.filter(collection=collection, content_hash=hashlib.sha256(data).hexdigest())
        if other := same.exclude(source=source).order_by("pk").first():
            raise DocumentRejected(f"{source} is the same file as {name_for_people(other)}, which is there already.")
    return submission.submit(collection, source, data, title=title, url=url, language=language, metadata=metadata)


def name_for_people(document: Document) -> str:
    """What tells the document from others in a sentence."""
    return f'"{document}" ({document.source})' if document.title else document.source
