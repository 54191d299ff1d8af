"""Repairing what a check found, while others write.

Every step looks again under the locks that writers take (documents before statistics, statistics in one order),
because what was true of the snapshot may have changed since. What belongs to a document's text is made anew by reading
its file; the old passages serve until then. A file that is gone cannot be repaired.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db import connection, transaction

from retrieval.dense.reembedding import reembed
from retrieval.distribution.tables import is_distributed
from retrieval.ingest import submission
from retrieval.ingest.writing import lock_statistics, reweigh
from retrieval.models import Collection, CollectionStatistics, Document, DocumentText
from retrieval.reconciliation.checks import (
    Inconsistency,
    ProblemKind,
    counted,
    empty_documents,
    has_whole_file,
    miscounted_documents,
    orphaned_files,
    settled,
    stale_documents,
    unreadable_documents,
)

logger = logging.getLogger(__name__)


def repair_found(found: Sequence[Inconsistency]) -> None:
    """Repair what can be repaired of the kinds and collections that were found.

    Raises: EmbeddingFailed, after all else is repaired, when passages without a vector could not be embedded.
    """
    kinds = {inconsistency.kind for inconsistency in found}

    def collections(*wanted: ProblemKind) -> list[Collection]:
        slugs = {inconsistency.collection for inconsistency in found if inconsistency.kind in wanted}
        return list(Collection.objects.filter(slug__in=slugs).order_by("pk"))

    if ProblemKind.MISPLACED_CHUNKS in kinds:
        _return_chunks()
    if ProblemKind.MISPLACED_VECTORS in kinds:
        _return_vectors()
    if ProblemKind.ORPHANED_VECTORS in kinds:
        _delete_orphaned_vectors()
    for collection in collections(ProblemKind.STATISTICS, ProblemKind.LEXEMES):
        recount(collection)
    for collection in collections(ProblemKind.STATISTICS, ProblemKind.TERM_WEIGHTS):
        reweigh(collection)
    for collection in collections(
        ProblemKind.STALE_TEXT, ProblemKind.UNREADABLE_OFFSETS, ProblemKind.EMPTY_DOCUMENTS, ProblemKind.CHUNK_COUNTS
    ):
        _read_again(collection)
    if ProblemKind.ORPHANED_FILES in kinds:
        _delete_orphaned_files()
    if ProblemKind.MISSING_VECTORS in kinds:
        # The check has made sure that the configured embedder is the one that is searched: it stays so.
        reembed(lambda *_: None)


def recount(collection: Collection) -> None:
    """Count the collection's passages and their words anew, while writers to it wait."""
    with transaction.atomic():
        statistics = lock_statistics(collection.pk)
        _recount(collection, statistics)


def _recount(collection: Collection, statistics: CollectionStatistics) -> None:
    statistics.chunks, statistics.total_length = counted(collection)
    statistics.version += 1
    statistics.save()
    with connection.cursor() as cursor:
        # Only the rows that differ are written; lexemes are taken in one order, as by every writer.
        cursor.execute(
            """
            WITH fresh AS MATERIALIZED (
                SELECT word, ndoc
                FROM ts_stat(format(
                    'SELECT search_vector FROM retrieval_chunk WHERE collection_id = %%s', %(collection)s::bigint
                ))
            ), gone AS (
                DELETE FROM retrieval_lexeme AS known
                WHERE collection_id = %(collection)s AND NOT EXISTS (SELECT FROM fresh WHERE word = known.lexeme)
            )
            INSERT INTO retrieval_lexeme AS known (collection_id, lexeme, document_frequency)
            SELECT %(collection)s, word, ndoc FROM fresh ORDER BY word
            ON CONFLICT (collection_id, lexeme) DO UPDATE SET document_frequency = excluded.document_frequency
            WHERE known.document_frequency <> excluded.document_frequency
            """,
            {"collection": collection.pk},
        )


def _return_chunks() -> None:
    """Passages (and their vectors) back into the collection of their document, and every collection counted anew."""
    with transaction.atomic():
        collections = list(Collection.objects.order_by("pk"))
        # Those that have none get theirs, and all are locked in the order in which everybody locks them.
        locked = {collection.pk: lock_statistics(collection.pk) for collection in collections}
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE retrieval_chunk AS chunk SET collection_id = document.collection_id "
                "FROM retrieval_document AS document "
                "WHERE document.id = chunk.document_id AND document.collection_id <> chunk.collection_id"
            )
        _return_vectors()
        for collection in collections:
            _recount(collection, locked[collection.pk])


def _return_vectors() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE retrieval_chunkembedding AS vector SET collection_id = chunk.collection_id "
            "FROM retrieval_chunk AS chunk WHERE chunk.id = vector.chunk_id "
            "AND chunk.document_id = vector.document_id AND vector.collection_id <> chunk.collection_id"
        )
        if not is_distributed():
            cursor.execute(
                "UPDATE retrieval_chunkembedding AS vector "
                "SET document_id = chunk.document_id, collection_id = chunk.collection_id "
                "FROM retrieval_chunk AS chunk WHERE chunk.id = vector.chunk_id "
                "AND vector.document_id <> chunk.document_id"
            )


def _delete_orphaned_vectors() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM retrieval_chunkembedding AS vector "
            "WHERE NOT EXISTS (SELECT FROM retrieval_chunk WHERE id = vector.chunk_id)"
        )


def _read_again(collection: Collection) -> None:
    """Have the documents read again whose text and passages do not fit, if their file is there to be read."""
    of_collection = Document.objects.filter(collection=collection)
    suspects = {
        *stale_documents(of_collection).values_list("pk", flat=True),
        *empty_documents(of_collection).values_list("pk", flat=True),
        *miscounted_documents(of_collection).values_list("pk", flat=True),
        *unreadable_documents(of_collection),
    }
    for pk in sorted(suspects):
        with transaction.atomic():
            document = settled(of_collection).select_for_update().filter(pk=pk).first()
            if document is None:
                continue
            if has_whole_file(document):
                # Without its fingerprint no passage of it is taken for unchanged.
                DocumentText.objects.filter(pk=pk).update(recipe="")
                submission.requeue(document)
                continue
            logger.warning("Document %s cannot be read again, its file is gone or damaged: upload it again.", pk)
            # What is there is what can be served.
            document.chunk_count = document.chunks.count()
            document.save(update_fields=["chunk_count"])


def _delete_orphaned_files() -> None:
    storage = Document.file.field.storage
    for name in orphaned_files(storage):
        logger.info("Deleting the file %s, which no document names.", name)
        storage.delete(name)
