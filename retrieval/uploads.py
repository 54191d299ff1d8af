"""Files that people hand in, by API or in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError

from retrieval.exceptions import DocumentRejected
from retrieval.ingest import pipeline
from retrieval.ingest.extraction import detection

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile

    from retrieval.models import Collection


def read(upload: UploadedFile[Any], source: str) -> bytes:
    """The file's bytes, if it can be a document at all.

    What can be told without reading the text is told now, while the person is there; the rest stands on the document
    afterwards. Raises: DocumentRejected, with a sentence that names the file.
    """
    # Looked at before the file is brought into memory.
    if (upload.size or 0) > settings.DOCUMENT_MAX_BYTES:
        limit = settings.DOCUMENT_MAX_BYTES // 2**20
        raise DocumentRejected(f"{source} is larger than {limit} MiB: split it into smaller files and upload those.")
    data: bytes = upload.read()
    if not data:
        raise DocumentRejected(f"{source} is empty: check the file and upload it again.")
    detection.detect(data, source, upload.content_type or "")
    return data


def accept(
    collection: Collection,
    upload: UploadedFile[Any],
    *,
    source: str = "",
    title: str = "",
    url: str = "",
    language: str = "",
    metadata: dict[str, object] | None = None,
) -> pipeline.Submission:
    """Submit an uploaded file, under its own name unless ``source`` gives another. Raises: DocumentRejected."""
    source = source or upload.name or ""
    data = read(upload, source)

    def submit() -> pipeline.Submission:
        return pipeline.submit(collection, source, data, title=title, url=url, language=language, metadata=metadata)

    try:
        return submit()
    except IntegrityError:
        # Somebody else handed in the same new source at this moment; now it is there, and this is its next version.
        return submit()
