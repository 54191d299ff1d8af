"""A file that is to be read: stored as its document's current version, and enqueued."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.conf import settings
from django.core.files.base import ContentFile
from django.db import DatabaseError
from django.utils import timezone
from django.utils.translation import gettext as _t

from retrieval.drafts.editing import changing
from retrieval.exceptions import DocumentRejected, FilesUnavailable
from retrieval.ingest.deletion import forget_files
from retrieval.ingest.fingerprint import is_current
from retrieval.ingest.turns import LEFT_TO_ITS_COMMAND
from retrieval.jobs.job import enqueue_on_commit
from retrieval.models import Collection, Document, Source
from retrieval.resilience import disk

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Submission:
    """What became of a submitted file: its document, and whether there is anything to read."""

    document: Document
    changed: bool


def submit(
    collection: Collection,
    source: str,
    data: bytes,
    *,
    title: str = "",
    url: str = "",
    language: str = "",
    metadata: dict[str, object] | None = None,
    parent: Document | None = None,
    enqueue: bool = True,
    origin: Source | None = None,
) -> Submission:
    """Store a file as the current version of ``source``, to be ingested; an unchanged file is left alone.

    A file that is handed in again with another title, address, language or other metadata has changed; one of a source
    or an archive has not, because there these are given once and then edited here. ``parent`` is the archive or mail
    that holds it, ``origin`` the source that it comes from by itself.

    Raises: DocumentRejected when it is larger than the site accepts, the collection's documents may not be changed, the
    document there came from elsewhere, or a member would take the place of one that is none of its parent's;
    DiskFull when there is no room for it. Then neither a file nor a row is left.
    """
    check_size(source, len(data))
    content_hash = hashlib.sha256(data).hexdigest()
    # Two uploads of a source that is new take turns here; there is no row of it yet that could be locked.
    with disk.saving(), _new_files() as new_files, changing(collection.pk):
        document = Document.objects.select_for_update().filter(collection=collection, source=source).first()
        if document is not None:
            _check_origin(document, origin)
        if (
            document is not None
            and document.content_hash == content_hash
            and document.status == Document.Status.READY
            and is_current(document)
            and (origin or parent or not _is_described_anew(document, title, url, language, metadata))
        ):
            return Submission(document, changed=False)
        if document is None:
            document = Document(collection=collection, source=source, title=title, parent=parent, origin=origin)
        elif parent is not None and document.parent_id != parent.pk:
            raise DocumentRejected(f"{parent.source} holds {source}, but there is another document of that name.")
        previous = document.file.name if document.pk and document.content_hash != content_hash else ""
        if not document.pk or previous:
            document.file.save(source.replace("\\", "/").rsplit("/", 1)[-1], ContentFile(data), save=False)
            new_files.append(str(document.file.name))
        document.content_hash = content_hash
        document.size_bytes = len(data)
        document.title = title or document.title
        document.url = url or document.url
        document.language = language or document.language
        document.metadata = metadata if metadata is not None else document.metadata
        requeue(document, enqueue=enqueue)
        document.share_metadata()
        forget_files([previous])
    return Submission(document, changed=True)


def _is_described_anew(
    document: Document, title: str, url: str, language: str, metadata: dict[str, object] | None
) -> bool:
    given = {"title": title, "url": url, "language": language}
    return any(value and value != getattr(document, name) for name, value in given.items()) or (
        metadata is not None and metadata != document.metadata
    )


def _check_origin(document: Document, origin: Source | None) -> None:
    """Raises: DocumentRejected when the document came another way: neither way writes over what the other brought."""
    if document.origin_id == (origin.pk if origin else None):
        return
    names = {"document": document.source, "source": document.origin}
    if document.origin is None:
        raise DocumentRejected(_t("%(document)s was uploaded: delete that document, or rename the source.") % names)
    raise DocumentRejected(
        _t("%(document)s comes from the source %(source)s: change it there, or give the file another name.") % names
    )


@contextmanager
def _new_files() -> Iterator[list[str]]:
    """Names of files whose row is saved inside; when that fails, they are deleted."""
    names: list[str] = []
    try:
        yield names
    except Exception:
        storage = Document.file.field.storage
        for name in names:
            try:
                # A commit may have been done although its confirmation was lost.
                if not Document.objects.filter(file=name).exists():
                    storage.delete(name)
            except DatabaseError:
                logger.warning("Whether the file %s belongs to a document will be seen by the next index check.", name)
            except FilesUnavailable:
                logger.warning("The file %s could not be deleted from its bucket.", name)
        raise


def check_size(source: str, size_bytes: int) -> None:
    """Raises: DocumentRejected when a file is larger than the site accepts."""
    if size_bytes > settings.DOCUMENT_MAX_BYTES:
        limit = settings.DOCUMENT_MAX_BYTES // 2**20
        raise DocumentRejected(f"{source} is larger than {limit} MiB: split it, or raise DOCUMENT_MAX_MIB.")


def requeue(document: Document, *, enqueue: bool = True) -> None:
    """Have the document read (again) from its file. A worker busy with it loses its lease."""
    for name, value in Document.restart_values().items():
        setattr(document, name, value)
    # The task of a document that its command reads is not sent, unless the command dies before: then the sweep does it.
    if not enqueue:
        document.retry_at = timezone.now() + LEFT_TO_ITS_COMMAND
    document.progress_percent = 0
    document.is_slow = False
    document.save()
    if enqueue:
        enqueue_on_commit(Document, [document.pk])
