"""Check a file, store it as the current version of its document, and queue the document for reading."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.base import ContentFile
from django.db import DatabaseError
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _t

from core import disk
from core.exceptions import FilesUnavailable
from core.job_queue import enqueue_on_commit
from core.user_types import AnyUser
from retrieval import backends
from retrieval.documents import formats
from retrieval.documents.deletion import delete_unused_files
from retrieval.documents.drafts.editing import lock_collections_for_change
from retrieval.documents.reading_turns import LEFT_TO_ITS_COMMAND
from retrieval.exceptions import DocumentRejected
from retrieval.models import Collection, Document, DocumentText, Embedder, Source
from retrieval.models.collection import TextSearchConfiguration
from retrieval.text import chunking
from retrieval.text.blocks import BLOCKS_VERSION
from retrieval.text.terms import ANALYSIS_VERSION

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile

logger = logging.getLogger(__name__)


def compute_fingerprint(document: Document, title: str, embedder: Embedder) -> str:
    """Return a hash of everything on which the passages of a document depend, except its text."""
    parts = (
        chunking.CHUNKER_VERSION,
        BLOCKS_VERSION,
        ANALYSIS_VERSION,
        # A former setting. If it were removed, all hashes would change, and all documents would be read again.
        1,
        embedder.name,
        document.collection.text_search_configuration,
        *([document.language] if document.collection.text_search_configuration == TextSearchConfiguration.AUTO else []),
        title,
        *([generator.name] if (generator := backends.get_question_generator()) else []),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def has_current_index(document: Document) -> bool:
    embedder = Embedder.objects.filter(is_active=True).first()
    if embedder is None:
        return False
    return DocumentText.objects.filter(
        pk=document.pk,
        content_hash=document.content_hash,
        recipe=compute_fingerprint(document, document.title, embedder),
    ).exists()


@dataclass(frozen=True, slots=True)
class Submission:
    document: Document
    changed: bool


def set_added_by(submission: Submission, user: AnyUser) -> None:
    if submission.changed and getattr(user, "pk", None) is not None:
        Document.objects.filter(pk=submission.document.pk, added_by=None, origin=None).update(added_by=user)


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
    """Store a file as the current version of the document named ``source``, and queue it for reading if it has changed.

    ``parent`` is the archive or mail that contains the file, ``origin`` the :class:`Source` that delivered it. If
    neither is given, a new title, address, language or metadata also update an unchanged document.

    Raises: DocumentRejected if the file is too large, the document may not be changed, or a document of another
    origin has this ``source``; DiskFull. After an error, neither the file nor a row remains.
    """
    check_size(source, len(data))
    check_row_count(source, data)
    content_hash = hashlib.sha256(data).hexdigest()
    # A new document has no row to lock.
    with disk.guard_against_full_disk(), _track_new_files() as new_files, lock_collections_for_change(collection.pk):
        document = Document.objects.select_for_update().filter(collection=collection, source=source).first()
        if document is not None:
            _check_origin(document, origin)
        if (
            document is not None
            and document.content_hash == content_hash
            and document.status == Document.Status.READY
            and has_current_index(document)
            and (origin or parent or not _has_new_description(document, title, url, language, metadata))
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
        requeue_document(document, enqueue=enqueue)
        document.copy_metadata_to_members()
        delete_unused_files([previous])
    return Submission(document, changed=True)


def _has_new_description(
    document: Document, title: str, url: str, language: str, metadata: dict[str, object] | None
) -> bool:
    given = {"title": title, "url": url, "language": language}
    return any(value and value != getattr(document, name) for name, value in given.items()) or (
        metadata is not None and metadata != document.metadata
    )


def _check_origin(document: Document, origin: Source | None) -> None:
    if document.origin_id == (origin.pk if origin else None):
        return
    names = {"document": document.source, "source": document.origin}
    if document.origin is None:
        raise DocumentRejected(_t("%(document)s was uploaded: delete that document, or rename the source.") % names)
    raise DocumentRejected(
        _t("%(document)s comes from the source %(source)s: change it there, or give the file another name.") % names
    )


@contextmanager
def _track_new_files() -> Iterator[list[str]]:
    """Yield a list of the files that the block stores. They are deleted if the block fails."""
    names: list[str] = []
    try:
        yield names
    except Exception:
        storage = Document.file.field.storage
        for name in names:
            try:
                # After a lost connection, the commit may have succeeded.
                if not Document.objects.filter(file=name).exists():
                    storage.delete(name)
            except DatabaseError:
                logger.warning("Whether the file %s belongs to a document will be seen by the next index check.", name)
            except FilesUnavailable:
                logger.warning("The file %s could not be deleted from its bucket.", name)
        raise


def check_size(source: str, size_bytes: int) -> None:
    if size_bytes > settings.DOCUMENT_MAX_BYTES:
        limit = settings.DOCUMENT_MAX_BYTES // 2**20
        raise DocumentRejected(
            f"{source} is larger than {limit} MiB: split it, or ask whoever runs this site to raise DOCUMENT_MAX_MIB."
        )


def check_row_count(source: str, data: bytes) -> None:
    """Raise DocumentRejected if a CSV or TSV file has more rows than a document may have passages."""
    if not source.lower().endswith((".csv", ".tsv")):
        return
    # Line breaks between quotation marks do not end a row.
    rows = sum(part.count(b"\n") for part in data.split(b'"')[::2])
    if rows > settings.DOCUMENT_MAX_PASSAGES:
        raise DocumentRejected(
            f"{source} has about {rows:,} rows, and {settings.DOCUMENT_MAX_PASSAGES:,} is the most: split it into "
            "smaller files."
        )


def requeue_document(document: Document, *, enqueue: bool = True) -> None:
    """Queue the document for reading again. A worker that is reading it loses its lease."""
    for name, value in Document.get_restart_values().items():
        setattr(document, name, value)
    # The command reads the document itself. If it dies, a periodic task queues the document.
    if not enqueue:
        document.retry_at = timezone.now() + LEFT_TO_ITS_COMMAND
    document.progress_percent = 0
    document.is_slow = False
    document.save()
    if enqueue:
        enqueue_on_commit(Document, [document.pk])


def read_upload(upload: UploadedFile[Any], source: str) -> bytes:
    """Return the content of an uploaded file of valid size and format. Raises: DocumentRejected."""
    check_size(source, upload.size or 0)
    data: bytes = upload.read()
    if not data:
        raise DocumentRejected(f"{source} is empty: check the file and upload it again.")
    formats.detect_format(data, source)
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
) -> Submission:
    """Submit an uploaded file as the document ``source``, or under the file's own name.

    Raises: DocumentRejected, also if the document exists and ``may_replace`` is false, or if a document in ``known``
    (those that the user may read) has the same content and another name.
    """
    source = source or upload.name or ""
    if not may_replace and Document.objects.filter(collection=collection, source=source).exists():
        raise DocumentRejected(f"{source} is there already, and your account may not change documents.")
    data = read_upload(upload, source)
    if known is not None:
        same = known.filter(collection=collection, content_hash=hashlib.sha256(data).hexdigest())
        if other := same.exclude(source=source).order_by("pk").first():
            raise DocumentRejected(f"{source} is the same file as {describe_document(other)}, which is there already.")
    return submit(collection, source, data, title=title, url=url, language=language, metadata=metadata)


def describe_document(document: Document) -> str:
    return f'"{document}" ({document.source})' if document.title else document.source
