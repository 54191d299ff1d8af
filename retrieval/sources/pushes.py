"""Store the documents that other programs send to a source of the kind Push.

Item, document and job change in one transaction, which locks the source's row.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone

from core import disk
from core.exceptions import RagsiteError
from core.key_limits import get_limits
from core.user_types import AnyUser
from retrieval.documents import formats
from retrieval.documents.drafts.editing import find_reason_not_to_add, lock_collections_for_change
from retrieval.documents.submission import check_size, read_upload, requeue_document, submit
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document, PushedItem, Source
from retrieval.sources.item_metadata import combine_pushed_metadata

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile

Result = PushedItem.Result
LONGEST_ID = 500
EXTENSIONS = {"text/markdown": ".md", "text/html": ".html", "text/plain": ".txt"}
_LONGEST_EXTENSION = 12


class PushOutdated(RagsiteError):
    """An error: the site has a newer state of the item. The API answers 409."""


class PushBusy(RagsiteError):
    """An error: the collection's documents cannot be changed now. The API answers 409."""


class PushForbidden(RagsiteError):
    """An error: the account may not replace documents. The API answers 403."""


class SourceGone(RagsiteError):
    """An error: the source was deleted in the meantime. The API answers 404."""


@dataclass(frozen=True, slots=True)
class PushedDocument:
    """A document that a program sent. A field that is None does not change the stored value.

    ``extension`` decides the format. ``readers`` are names of groups. ``is_for_everybody``: groups of earlier requests
    are removed.
    """

    external_id: str
    data: bytes
    extension: str
    title: str = ""
    url: str = ""
    changed_at: datetime | None = None
    metadata: dict[str, object] | None = None
    readers: tuple[str, ...] | None = None
    is_for_everybody: bool = False


def read_text(text: str, content_type: str) -> tuple[bytes, str]:
    """Return a sent text as the bytes of a file, and the file's extension."""
    data = text.encode()
    if content_type == "text/html":
        if not formats.is_html(formats.FileContent(data, "page.html")):
            data = b"<!doctype html><html><body>%s</body></html>" % data
        data = b"\xef\xbb\xbf" + data
    return data, EXTENSIONS[content_type]


def read_file(upload: UploadedFile[Any]) -> tuple[bytes, str]:
    name = upload.name or "file"
    return read_upload(upload, name), PurePosixPath(name).suffix[:_LONGEST_EXTENSION]


def put_document(source: Source, user: AnyUser, push: PushedDocument) -> PushedItem:
    """Add or replace the document, and queue it for reading if it has changed. Return its item, with the document.

    Raises: DocumentRejected, PushOutdated, PushBusy, PushForbidden, SourceGone, DiskFull.
    """
    check_size(push.external_id, len(push.data))
    content_hash = hashlib.sha256(push.data).hexdigest()
    with disk.guard_against_full_disk(), _lock_source(source) as source_metadata:
        item = source.pushed_items.filter(external_id=push.external_id).first()
        item = item or PushedItem(source=source, external_id=push.external_id)
        _raise_if_outdated(item, push.changed_at)
        document = source.own_documents.filter(source=item.name).first() if item.name else None
        has_other_format = document is not None and not item.name.lower().endswith(push.extension.lower())
        had = item.content_hash, item.title, item.url, item.metadata, item.readers
        _copy_push_to_item(item, push, content_hash)
        has_changed = had != (item.content_hash, item.title, item.url, item.metadata, item.readers) or has_other_format
        if document is not None and not has_changed:
            _raise_if_not_readable(document, user)
            item.document = document
            return _record(item, Result.UNCHANGED, user, push.changed_at)
        if document is None or has_other_format:
            item.name = _choose_document_name(source, push, document)
        if document is not None:
            if not user.has_perm("retrieval.change_document"):
                raise PushForbidden(
                    f"{push.external_id[:100]} is there already, and your account may not change documents."
                )
            # A push in another format gives the item a new name, but the document keeps its id.
            Document.objects.filter(pk=document.pk).update(source=item.name)
        is_described = document is None or had[3:] != (item.metadata, item.readers)
        metadata = combine_pushed_metadata(item, source_metadata) if is_described else None
        submission = submit(
            source.collection,
            item.name,
            push.data,
            title=push.title if document else item.title,
            url=push.url if document else item.url,
            metadata=metadata,
            origin=source,
        )
        item.document = submission.document
        if not submission.changed:
            _update_description(submission.document, push, metadata)
        return _record(item, Result.ADDED if document is None else Result.CHANGED, user, push.changed_at)


def delete_document(
    source: Source, user: AnyUser, external_id: str, changed_at: datetime | None = None
) -> PushedItem | None:
    """Delete the document with this id. Return its PushedItem; None if no push ever had this id.

    Pushes that arrive later are refused if they are older than ``changed_at``, the time of the deletion. Raises:
    PushOutdated, PushBusy, SourceGone.
    """
    with _lock_source(source):
        item = source.pushed_items.filter(external_id=external_id).first()
        if item is None and changed_at is None:
            return None
        item = item or PushedItem(source=source, external_id=external_id)
        _raise_if_outdated(item, changed_at)
        for document in source.own_documents.filter(source=item.name) if item.name else ():
            document.delete()
        item.name = item.content_hash = item.title = item.url = ""
        item.metadata, item.readers = {}, None
        return _record(item, Result.DELETED, user, changed_at)


@contextmanager
def _lock_source(source: Source) -> Iterator[dict[str, object]]:
    try:
        with transaction.atomic():
            rows = Source.objects.select_for_update(no_key=True).filter(pk=source.pk)
            metadata = rows.values_list("metadata", flat=True).first()
            if metadata is None:
                raise SourceGone("This does not exist, or is not yours.")
            with lock_collections_for_change(source.collection_id):
                yield metadata
    except DocumentRejected as error:
        if reason := find_reason_not_to_add(source.collection):
            raise PushBusy(reason) from error
        raise


def _raise_if_outdated(item: PushedItem, changed_at: datetime | None) -> None:
    if changed_at is not None and item.changed_at is not None and changed_at < item.changed_at:
        raise PushOutdated(
            f"{item.external_id[:100]} was changed at {item.changed_at.isoformat()}, which is later than what you sent."
        )


def _copy_push_to_item(item: PushedItem, push: PushedDocument, content_hash: str) -> None:
    item.content_hash = content_hash
    item.title = push.title or item.title
    item.url = push.url or item.url
    item.metadata = push.metadata if push.metadata is not None else item.metadata
    if push.is_for_everybody:
        item.readers = None
    elif push.readers is not None:
        item.readers = sorted(set(push.readers))


def _raise_if_not_readable(document: Document, user: AnyUser) -> None:
    # The response must not describe a document that the account may not read.
    if not Document.objects.readable_by(user).filter(pk=document.pk).exists():
        raise PushForbidden("Your account may not see this document.")


def _record(item: PushedItem, result: str, user: AnyUser, changed_at: datetime | None) -> PushedItem:
    limits = get_limits(user)
    item.result, item.sent_at, item.sent_by_id = result, timezone.now(), user.pk
    item.key = limits.key if limits is not None else ""
    item.changed_at = changed_at or item.changed_at
    item.save()
    return item


def _choose_document_name(source: Source, push: PushedDocument, document: Document | None) -> str:
    signs = (" " if unicodedata.category(sign).startswith("C") else sign for sign in push.external_id)
    name = "".join(signs).strip(" /") or "document"
    if not name.lower().endswith(push.extension.lower()):
        name += push.extension
    name = f"{source.name}/{name}"
    namesake = Document.objects.filter(collection=source.collection_id, source=name, origin=source).first()
    if namesake is not None and namesake != document:
        path, mark = PurePosixPath(name), hashlib.sha256(push.external_id.encode()).hexdigest()[:8]
        name = str(path.with_name(f"{path.stem}-{mark}{path.suffix}"))
    return name


def _update_description(document: Document, push: PushedDocument, metadata: dict[str, object] | None) -> None:
    document.title, document.url = push.title or document.title, push.url or document.url
    document.metadata = document.metadata if metadata is None else metadata
    requeue_document(document)
    document.copy_metadata_to_members()
