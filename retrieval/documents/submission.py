"""A file that is to be read: checked, stored as its document's current version, and enqueued for its turn."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files.base import ContentFile
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _t

from core import disk
from core.exceptions import FilesUnavailable, RagsiteError
from core.jobs import enqueue_on_commit
from retrieval import backends
from retrieval.documents import formats
from retrieval.documents.deletion import forget_files
from retrieval.documents.drafts.editing import changing
from retrieval.exceptions import DocumentRejected
from retrieval.models import Collection, Document, DocumentText, Embedder, Source
from retrieval.models.collection import TextSearchConfiguration
from retrieval.text import chunking
from retrieval.text.blocks import BLOCKS_VERSION
from retrieval.text.extracted import Member
from retrieval.text.terms import ANALYSIS_VERSION

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile

logger = logging.getLogger(__name__)

# A few slow documents never keep all workers from the quick ones: a document is slow once reading it took longer than
# ``QUICK_SECONDS``, or when it holds very much text. At most ``SLOW_DOCUMENTS_AT_ONCE`` of those are read at the same
# time; the others wait as PENDING, without an attempt counted. The rows say who has a turn: it is the slow documents
# that are leased to a living worker.

WAITING = "Waits for its turn: reading this file takes long, and so does one that is being read now."
# Whoever ends a turn calls the next; this is for when nobody did.
ASKED_AGAIN_AFTER = timedelta(seconds=15)
# A command submits and reads in two steps: no worker comes between them. If the command died, one reads the document.
LEFT_TO_ITS_COMMAND = timedelta(seconds=30)
_TURNS_LOCK = 7_214_605_330_118_274_901


class TurnPostponed(RagsiteError):
    """The document waits for its turn; another worker will have it. For the log."""


class ReadingTurn:
    """The turn of one leased document; ``takes_turns`` is False where no worker waits for it, as on a terminal.
    ``ends`` says that it is to be given to another after a while."""

    def __init__(self, document: Document, *, takes_turns: bool) -> None:
        self._document = document
        self.is_taken = not takes_turns
        self.ends = takes_turns
        if document.is_slow:
            self.take()

    def is_wanted(self, elapsed_seconds: float) -> bool:
        """Whether work that has taken so long goes on; False when the document has to wait for its turn."""
        return elapsed_seconds < settings.QUICK_SECONDS or self._try_to_take()

    def take(self) -> None:
        """Take the turn. Raises: TurnPostponed if others come first."""
        if not self._try_to_take():
            raise TurnPostponed(f"Document {self._document.pk} waits for its turn.")

    def _try_to_take(self) -> bool:
        self.is_taken = self.is_taken or _take(self._document)
        return self.is_taken


def next_waiting() -> int | None:
    """The id of the slow document that has waited longest."""
    waiting = Document.objects.filter(status=Document.Status.PENDING, is_slow=True, retry_at__isnull=False)
    return waiting.order_by("created_at", "pk").values_list("pk", flat=True).first()


def _take(document: Document) -> bool:
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Two workers that both counted before either wrote would both have the last turn.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_TURNS_LOCK])
        slow = Document.objects.filter(status=Document.Status.PROCESSING, is_slow=True)
        taken = slow.filter(heartbeat_at__gte=Now() - Document.SILENT_AFTER).exclude(pk=document.pk)
        if taken.count() >= settings.SLOW_DOCUMENTS_AT_ONCE:
            return False
        # Whether the lease was lost is checked when the text is saved.
        document.held().update(is_slow=True)
        return True


def compute_fingerprint(document: Document, title: str, embedder: Embedder) -> str:
    """Fingerprint of all that shapes a passage beside its own text: passages with another fingerprint are made anew."""
    parts = (
        chunking.CHUNKER_VERSION,
        BLOCKS_VERSION,
        ANALYSIS_VERSION,
        1,  # what was kept of token vectors until version 0.2: without it all documents would be read again
        embedder.name,
        document.collection.text_search_configuration,
        *([document.language] if document.collection.text_search_configuration == TextSearchConfiguration.AUTO else []),
        title,
        # A model's questions are worth another reading.
        *([generator.name] if (generator := backends.question_generator()) else []),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def is_current(document: Document) -> bool:
    """Whether the document's passages were made the way they would be made now."""
    embedder = Embedder.objects.filter(is_active=True).first()
    if embedder is None:
        return False
    return DocumentText.objects.filter(
        pk=document.pk,
        content_hash=document.content_hash,
        recipe=compute_fingerprint(document, document.title, embedder),
    ).exists()


# Of archives and mails in each other.
MOST_LEVELS = 3


@dataclass(frozen=True, slots=True)
class Submission:
    """What became of a submitted file: its document, and whether there is anything to read."""

    document: Document
    changed: bool


def set_added_by(submission: Submission, user: Any) -> None:
    """Note who handed in a document that nobody is noted for; a new version has its first one's."""
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
    """Store a file as the current version of ``source``, to be ingested; an unchanged file is left alone.

    A file that is handed in again with another title, address, language or other metadata has changed; one of a source
    or an archive has not, because there these are given once and then edited here. ``parent`` is the archive or mail
    that holds it, ``origin`` the source that it comes from by itself.

    Raises: DocumentRejected when it is larger than the site accepts, the collection's documents may not be changed, the
    document there came from elsewhere, or a member would take the place of one that is none of its parent's;
    DiskFull when there is no room for it. Then neither a file nor a row is left.
    """
    check_size(source, len(data))
    check_rows(source, data)
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
        raise DocumentRejected(
            f"{source} is larger than {limit} MiB: split it, or ask whoever runs this site to raise DOCUMENT_MAX_MIB."
        )


def check_rows(source: str, data: bytes) -> None:
    """Raises: DocumentRejected for a table file with more rows than a document may have passages: each is one."""
    if not source.lower().endswith((".csv", ".tsv")):
        return
    # Every other part stands within quotation marks, where a line break ends no row.
    rows = sum(part.count(b"\n") for part in data.split(b'"')[::2])
    if rows > settings.DOCUMENT_MAX_PASSAGES:
        raise DocumentRejected(
            f"{source} has about {rows:,} rows, and {settings.DOCUMENT_MAX_PASSAGES:,} is the most: split it into "
            "smaller files."
        )


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


def read_upload(upload: UploadedFile[Any], source: str) -> bytes:
    """The file's bytes, if it can be a document at all.

    What can be told without reading the text is told now, while the person is there; the rest stands on the document
    afterwards. Raises: DocumentRejected, with a sentence that names the file.
    """
    # Looked at before the file is brought into memory.
    check_size(source, upload.size or 0)
    data: bytes = upload.read()
    if not data:
        raise DocumentRejected(f"{source} is empty: check the file and upload it again.")
    formats.detect(data, source)
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
    return submit(collection, source, data, title=title, url=url, language=language, metadata=metadata)


def name_for_people(document: Document) -> str:
    """A name that identifies the document in a sentence."""
    return f'"{document}" ({document.source})' if document.title else document.source


def submit_members(document: Document, members: Sequence[Member]) -> None:
    """Submit each member that is new or has changed. The document must be leased by this process.

    Whoever is interrupted begins again: what was submitted before is then unchanged.
    Raises: LeaseLost; DocumentRejected for archives in archives in archives, and a member whose place is taken.
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
