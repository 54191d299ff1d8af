"""Begin, publish and discard drafts: working copies of a collection's documents, which are published as a whole."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import ngettext

from core.dataclass_json import to_json
from core.exceptions import LeaseLost, RagsiteError
from core.job_queue import enqueue_on_commit
from core.jobs import acquire_lease, heartbeat
from retrieval import gates
from retrieval.documents.drafts.copying import copy_documents
from retrieval.documents.drafts.editing import find_draft
from retrieval.gates import PublicationRefused
from retrieval.index.chunk_writer import lock_collection_statistics, recompute_term_weights, refresh_planner_statistics
from retrieval.models import Chunk, Collection, CollectionStatistics, Document, Draft, Lexeme, Visibility

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

logger = logging.getLogger(__name__)

_UNREAD = (Document.Status.PENDING, Document.Status.PROCESSING)
# A working copy's slug begins with this many characters of the collection's slug.
_SLUG_LENGTH, _NAME_LENGTH = 36, 200
DOCUMENTS_A_STEP = 100


class DraftRefused(RagsiteError):
    """An error: the draft cannot be created, published or discarded now. Its message is shown to the admin."""


def begin_draft(collection: Collection, by: AbstractBaseUser | AnonymousUser | None = None) -> Draft:
    """Create a draft of the collection. A worker then copies the documents into it.

    Raises: DraftRefused if the collection has an open draft, is a working copy, or has documents that are still being
    read by a worker.
    """
    with transaction.atomic():
        collection = Collection.objects.select_for_update(no_key=True).get(pk=collection.pk)
        if find_draft(collection) is not None:
            raise DraftRefused(_t("%s is itself a draft: change it instead.") % collection)
        if collection.drafts.filter_open().exists():
            raise DraftRefused(_t("%s has a draft already: publish or discard it first.") % collection)
        _refuse_unread_documents(collection)
        draft = Draft.objects.create(collection=collection, created_by_id=by.pk if by else None)
        mark = _t("%s (draft)")
        draft.working_copy = Collection.objects.create(
            slug=f"{collection.slug[:_SLUG_LENGTH]}-draft-{draft.pk}",
            name=mark % collection.name[: _NAME_LENGTH - len(mark)],
            description=collection.description,
            text_search_configuration=collection.text_search_configuration,
            # A working copy has the rights of its collection, so its own visibility does not count.
            visibility=Visibility.GRANTED,
        )
        draft.save(update_fields=["working_copy"])
        enqueue_on_commit(Draft, [draft.pk])
    return draft


def publish_draft(draft: Draft, by: AbstractBaseUser | AnonymousUser | None = None, *, override: str = "") -> Draft:
    """Queue the draft for publication. A worker then replaces the collection's documents in one transaction.

    ``override`` is the reason to publish although a gate (a check of drafts) objects. Raises: DraftRefused if the draft
    cannot be published now; PublicationRefused if a gate objects and ``override`` is blank.
    """
    with transaction.atomic():
        draft = _lock_draft(draft, Draft.Status.OPEN)
        # Writers lock these rows too. So earlier writers have ended after this query, and later ones see PUBLISHING.
        list(list_draft_collections(draft).select_for_update(no_key=True).order_by("pk"))
        _refuse_unread_documents(draft.working_copy)
        if not find_draft_changes(draft):
            raise DraftRefused(_t("%s changes nothing: there is nothing to publish.") % draft)
        versions = read_versions(draft)
        objections = gates.find_publication_objections(draft)
        if objections and not override.strip():
            raise PublicationRefused(objections)
        draft.status = Draft.Status.PUBLISHING
        draft.attempts = 0
        draft.enqueued_at = None
        draft.error = ""
        draft.permitted_versions = versions
        draft.published_by_id = by.pk if by else None
        draft.objections = to_json(objections)
        draft.override = override.strip() if objections else ""
        draft.save()
        enqueue_on_commit(Draft, [draft.pk])
    if objections:
        logger.warning("%s is published against objections, because: %s", draft, draft.override)
    return draft


def _refuse_unread_documents(collection: Collection | None) -> None:
    if unread := Document.objects.filter(collection=collection, status__in=_UNREAD).count():
        message = ngettext(
            "%d document is still being read: wait for it.", "%d documents are still being read: wait for them.", unread
        )
        raise DraftRefused(message % unread)


def discard_draft(draft: Draft) -> Draft:
    """Discard the draft. A worker then deletes its working copy. Raises: DraftRefused while it is being published."""
    with transaction.atomic():
        draft = _lock_draft(draft, Draft.Status.COPYING, Draft.Status.OPEN)
        draft.status = Draft.Status.DISCARDED
        draft.retry_at = draft.enqueued_at = None
        draft.error = ""
        draft.save()
        enqueue_on_commit(Draft, [draft.pk])
    return draft


def resume_draft(draft_id: int) -> Draft | None:
    """Copy, publish or delete the draft, as its status says. Return None if there was nothing to do.

    An error is stored in the draft's row.
    """
    draft = _lease_draft(draft_id)
    if draft is None:
        return None
    try:
        with heartbeat(draft):
            while _do_next_draft_step(draft):
                pass
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except Exception:
        logger.exception("Draft %s could not be resumed.", draft_id)
        if not draft.cancel_publication(_t("Publishing it failed, and nothing was changed. The log says why.")):
            draft.postpone(_t("This step failed; it is tried again by itself. The log says why."))
    return Draft.objects.filter(pk=draft_id).first()


def _lease_draft(draft_id: int) -> Draft | None:
    with transaction.atomic():
        # A publication may lock the row for minutes, so a locked row is skipped.
        unlocked = Draft.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=draft_id).first()
        return acquire_lease(Draft.unfinished(), draft_id) if unlocked is not None else None


def _do_next_draft_step(leased_draft: Draft) -> bool:
    with transaction.atomic():
        draft = leased_draft.lock()
        if draft.working_copy is None or draft.status == Draft.Status.OPEN:
            more = False
        elif draft.status == Draft.Status.COPYING:
            more = _copy_next_document_batch(draft, draft.working_copy)
        elif draft.status == Draft.Status.PUBLISHING:
            more = _publish_now(draft, draft.working_copy)
        else:
            more = _delete_next_document_batch(draft, draft.working_copy)
        if not more:
            draft.write_under_lease(lease=None, retry_at=None)
        return more


def _copy_next_document_batch(draft: Draft, working_copy: Collection) -> bool:
    copied = Document.objects.filter(collection=working_copy).values("source")
    left = Document.objects.filter(collection=draft.collection_id).exclude(source__in=copied).order_by("pk")
    documents = list(left.only("pk", "source")[:DOCUMENTS_A_STEP])
    copy_documents(documents, working_copy)
    Draft.objects.filter(pk=draft.pk).update(copied=F("copied") + len(documents), error="")
    if documents:
        return True
    recompute_term_weights(working_copy)
    Draft.objects.filter(pk=draft.pk).update(status=Draft.Status.OPEN)
    transaction.on_commit(refresh_planner_statistics, robust=True)
    return False


def _publish_now(draft: Draft, working_copy: Collection) -> bool:
    """Apply the draft to its collection; return False if a document has changed since an admin asked for this."""
    collection = draft.collection
    list(list_draft_collections(draft).select_for_update(no_key=True).order_by("pk"))
    # Locks are taken in the order of ingestion, to avoid deadlocks: documents before statistics.
    documents = Document.objects.filter(collection__in=[collection, working_copy])
    list(documents.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
    lock_collection_statistics(collection.pk)
    lock_collection_statistics(working_copy.pk)
    if read_versions(draft) != draft.permitted_versions:
        draft.cancel_publication(_t("The documents changed while the draft waited to be published: check it again."))
        return False
    found = find_draft_changes(draft)
    for document in Document.objects.filter(collection=collection, source__in=found.removed):
        document.delete()
    renewed = Document.objects.filter(collection=working_copy, source__in=[*found.added, *found.changed])
    copy_documents(list(renewed.only("pk", "source")), collection)
    Draft.objects.filter(pk=draft.pk).update(
        status=Draft.Status.PUBLISHED, published_at=timezone.now(), changes=asdict(found), error=""
    )
    transaction.on_commit(refresh_planner_statistics, robust=True)
    return True


def _delete_next_document_batch(draft: Draft, working_copy: Collection) -> bool:
    documents = Document.objects.filter(collection=working_copy)
    if ids := list(documents.order_by("pk").values_list("pk", flat=True)[:DOCUMENTS_A_STEP]):
        # Searches do not use a working copy, so its statistics are set to 0 before all documents are deleted.
        statistics = lock_collection_statistics(working_copy.pk)
        statistics.chunks, statistics.total_length = 0, 0.0
        statistics.save()
        Lexeme.objects.filter(collection=working_copy).delete()
        Chunk.objects.filter(document__in=ids).only("pk").delete()
        documents.filter(pk__in=ids).delete()
        return True
    if draft.status == Draft.Status.PUBLISHED:
        recompute_term_weights(draft.collection)
    working_copy.delete()
    return False


def _lock_draft(draft: Draft, *statuses: Draft.Status) -> Draft:
    draft = Draft.objects.select_for_update(of=("self",), no_key=True).select_related("collection").get(pk=draft.pk)
    if draft.status not in statuses:
        raise DraftRefused(_t("%(draft)s is %(status)s.") % {"draft": draft, "status": draft.get_status_display()})
    return draft


@dataclass(frozen=True, slots=True)
class DraftChanges:
    """The names of the documents that a draft adds, changes and removes. Each list is sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def find_draft_changes(draft: Draft) -> DraftChanges:
    """Return the differences between working copy and collection."""
    if draft.working_copy_id is None:
        return DraftChanges()
    now, wanted = _hash_contents(draft.collection_id), _hash_contents(draft.working_copy_id)
    return DraftChanges(
        added=tuple(sorted(wanted.keys() - now.keys())),
        changed=tuple(sorted(source for source in wanted.keys() & now.keys() if wanted[source] != now[source])),
        removed=tuple(sorted(now.keys() - wanted.keys())),
    )


def list_draft_collections(draft: Draft) -> QuerySet[Collection]:
    return Collection.objects.filter(pk__in=[draft.collection_id, draft.working_copy_id])


def read_versions(draft: Draft) -> list[int]:
    ids = (draft.collection_id, draft.working_copy_id or 0)
    versions = dict(CollectionStatistics.objects.filter(pk__in=ids).values_list("pk", "version"))
    return [versions.get(pk, 0) for pk in ids]


def _hash_contents(collection_id: int) -> dict[str, str]:
    """Return a dict of hashes by document source. A hash covers the data that users can see or search."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT document.source, md5(row(document.content_hash, document.title, document.url, document.language,
                document.metadata, document.status = 'failed', passages.digest)::text)
            FROM retrieval_document AS document
            LEFT JOIN (
                SELECT document_id,
                    md5(string_agg(row(content_hash, canonical_questions)::text, '' ORDER BY ordinal)) AS digest
                FROM retrieval_chunk WHERE collection_id = %(collection)s GROUP BY document_id
            ) AS passages ON passages.document_id = document.id
            WHERE document.collection_id = %(collection)s
            """,
            {"collection": collection_id},
        )
        return dict(cursor.fetchall())
