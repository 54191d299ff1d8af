"""Whether everything that search reads agrees: passages, vectors, statistics, documents and files; and its repair.

Ingestion writes them in one transaction, so that they agree by construction; a restored backup, a script, or a fault
may still set them apart, and search would go on with wrong scores and missing passages without a word. A check reads
one snapshot and locks nothing. A repair works while others write: every step looks again under the locks that writers
take (documents before statistics, statistics in one order). What belongs to a document's text is made anew by reading
its file; the old passages serve until then. A file that is gone cannot be repaired.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from enum import StrEnum

from django.core.files.storage import FileSystemStorage, Storage
from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from retrieval.documents import submission
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import lock_statistics, reweigh, weighting
from retrieval.index.distribution import is_distributed
from retrieval.index.reembedding import is_loading, reembed
from retrieval.models import Chunk, ChunkEmbedding, Collection, CollectionStatistics, Document, DocumentText, Draft
from retrieval.models.chunk import IndexCheck

logger = logging.getLogger(__name__)

# Of the results of checks.
CHECKS_KEPT = 30
# Files are stored before the row that names them is committed: a young one may be about to get its row.
ORPHANED_AFTER = timedelta(hours=1)
# No upload is empty, so that an empty file is what a full disk left; being written, it is empty for a moment.
EMPTY_AFTER = timedelta(minutes=1)
UPLOAD_FOLDER = "documents"
EXAMPLES = 5
# Sums of the same lengths in another order.
LENGTH_TOLERANCE = 1e-6


class ProblemKind(StrEnum):
    """What can disagree."""

    MISPLACED_CHUNKS = "misplaced_chunks"
    MISPLACED_VECTORS = "misplaced_vectors"
    ORPHANED_VECTORS = "orphaned_vectors"
    MISSING_VECTORS = "missing_vectors"
    STATISTICS = "statistics"
    LEXEMES = "lexemes"
    TERM_WEIGHTS = "term_weights"
    STALE_TEXT = "stale_text"
    UNREADABLE_OFFSETS = "unreadable_offsets"
    EMPTY_DOCUMENTS = "empty_documents"
    CHUNK_COUNTS = "chunk_counts"
    MISSING_FILES = "missing_files"
    DAMAGED_FILES = "damaged_files"
    ORPHANED_FILES = "orphaned_files"


DESCRIPTIONS: dict[ProblemKind, str] = {
    ProblemKind.MISPLACED_CHUNKS: _("passages in another collection than their document"),
    ProblemKind.MISPLACED_VECTORS: _("vectors in another document or collection than their passage"),
    ProblemKind.ORPHANED_VECTORS: _("vectors without a passage"),
    ProblemKind.MISSING_VECTORS: _("passages without vectors of the embedder that is searched"),
    ProblemKind.STATISTICS: _("number or length of passages, as counted again"),
    ProblemKind.LEXEMES: _("words whose document frequency is not the one counted again"),
    ProblemKind.TERM_WEIGHTS: _("term weights of other settings than the present ones"),
    ProblemKind.STALE_TEXT: _("ready documents whose text is missing or of another version of the file"),
    ProblemKind.UNREADABLE_OFFSETS: _("documents with passages that are not where they say in the text"),
    ProblemKind.EMPTY_DOCUMENTS: _("ready documents without a passage"),
    ProblemKind.CHUNK_COUNTS: _("documents with more or fewer passages than were written"),
    ProblemKind.MISSING_FILES: _("documents whose file is gone from the storage"),
    ProblemKind.DAMAGED_FILES: _("documents whose file has another size than was uploaded"),
    ProblemKind.ORPHANED_FILES: _("stored files that no document names"),
}


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """``count`` disagreements of one kind, in one collection (its slug; empty when they belong to none).

    ``examples`` names a few: ids, words or file names, as the kind has it.
    """

    kind: ProblemKind
    collection: str
    count: int
    examples: tuple[str, ...] = ()
    repaired: bool = False


def check() -> list[Inconsistency]:
    """All that disagrees, in the order of :class:`Kind`; empty when nothing does.

    Must not run inside a transaction: it reads one snapshot, so that writers at work do not look like faults.
    Raises: ImproperEmbedder when the stored vectors are not the configured embedder's.
    """
    embedder = active_embedder()
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        checked = [
            _list(ProblemKind.ORPHANED_VECTORS, "", _orphaned_vectors()),
            _list(ProblemKind.ORPHANED_FILES, "", orphaned_files(Document.file.field.storage)),
        ]
        # Of what a worker is clearing away, nothing is kept in step.
        for collection in Collection.objects.exclude(draft__status__in=Draft.ENDED).order_by("slug"):
            checked += _check_collection(collection, embedder.pk)
    order = list(ProblemKind)
    found = (inconsistency for inconsistency in checked if inconsistency.count)
    return sorted(found, key=lambda inconsistency: (order.index(inconsistency.kind), inconsistency.collection))


def _check_collection(collection: Collection, embedder_id: int) -> list[Inconsistency]:
    chunks = Chunk.objects.filter(collection=collection)
    vectors = ChunkEmbedding.objects.filter(collection=collection)
    documents = Document.objects.filter(collection=collection)

    def rows(
        kind: ProblemKind, disagreeing: QuerySet[Chunk] | QuerySet[ChunkEmbedding] | QuerySet[Document]
    ) -> Inconsistency:
        examples = tuple(str(pk) for pk in disagreeing.order_by("pk").values_list("pk", flat=True)[:EXAMPLES])
        return Inconsistency(kind, collection.slug, disagreeing.count() if examples else 0, examples)

    return [
        rows(ProblemKind.MISPLACED_CHUNKS, chunks.exclude(document__collection=collection)),
        rows(ProblemKind.MISPLACED_VECTORS, misplaced_vectors(vectors)),
        rows(ProblemKind.MISSING_VECTORS, unencoded(awaited(chunks), embedder_id)),
        *_statistics(collection),
        _list(ProblemKind.LEXEMES, collection.slug, wrong_lexemes(collection)),
        rows(ProblemKind.STALE_TEXT, stale_documents(documents)),
        _list(ProblemKind.UNREADABLE_OFFSETS, collection.slug, list(map(str, unreadable_documents(documents)))),
        rows(ProblemKind.EMPTY_DOCUMENTS, empty_documents(documents)),
        rows(ProblemKind.CHUNK_COUNTS, miscounted_documents(documents)),
        *(_list(kind, collection.slug, ids) for kind, ids in _damaged_files(documents).items()),
    ]


def settled(documents: QuerySet[Document]) -> QuerySet[Document]:
    """Those that no worker is about to write."""
    return documents.exclude(status__in=[Document.Status.PENDING, Document.Status.PROCESSING])


def awaited(chunks: QuerySet[Chunk]) -> QuerySet[Chunk]:
    """Chunks that have to have a vector now: of what is being loaded in bulk, a living process makes them later."""
    return chunks.exclude(document__in=Document.objects.filter(awaits_vectors=True)) if is_loading() else chunks


def unencoded(chunks: QuerySet[Chunk], embedder_id: int) -> QuerySet[Chunk]:
    """Chunks without a vector of the embedder."""
    encoded = ChunkEmbedding.objects.filter(chunk=OuterRef("pk"), document=OuterRef("document"), embedder=embedder_id)
    return chunks.filter(~Exists(encoded))


def misplaced_vectors(vectors: QuerySet[ChunkEmbedding]) -> QuerySet[ChunkEmbedding]:
    if is_distributed():
        # A vector of another document than its passage's is impossible there (retrieval.index.distribution).
        return vectors.filter(chunk__document=F("document")).exclude(chunk__collection=F("collection"))
    return vectors.exclude(chunk__collection=F("collection"), chunk__document=F("document"))


def stale_documents(documents: QuerySet[Document]) -> QuerySet[Document]:
    """Ready documents whose stored text was not read from the file they have now."""
    return documents.filter(status=Document.Status.READY).exclude(text__content_hash=F("content_hash"))


def empty_documents(documents: QuerySet[Document]) -> QuerySet[Document]:
    """Ready documents that were read from a file (which without text would have been refused), and have no passage."""
    return documents.filter(status=Document.Status.READY, chunks=None).exclude(file="")


def miscounted_documents(documents: QuerySet[Document]) -> QuerySet[Document]:
    """Documents with more or fewer passages than were written when they were read; one being read is left out."""
    promised = dict(settled(documents).order_by().values_list("pk", "chunk_count"))
    chunks = Chunk.objects.filter(document__in=settled(documents).order_by()).order_by()
    counted = dict(chunks.values_list("document").annotate(Count("pk")))
    return documents.filter(pk__in=[pk for pk, number in promised.items() if counted.get(pk, 0) != number])


def wrong_lexemes(collection: Collection) -> list[str]:
    """Words of the collection that are missing, superfluous, or counted wrongly; sorted."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT coalesce(known.lexeme, fresh.word)
            FROM (SELECT lexeme, document_frequency FROM retrieval_lexeme WHERE collection_id = %s) AS known
            FULL JOIN ts_stat(format('SELECT search_vector FROM retrieval_chunk WHERE collection_id = %%s', %s::bigint))
                AS fresh ON fresh.word = known.lexeme
            WHERE known.document_frequency IS DISTINCT FROM fresh.ndoc
            ORDER BY 1
            """,
            [collection.pk, collection.pk],
        )
        return [lexeme for (lexeme,) in cursor.fetchall()]


def counted(collection: Collection) -> tuple[int, float]:
    """Number and total length of the collection's passages."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), coalesce(sum(length), 0) FROM retrieval_chunk WHERE collection_id = %s", [collection.pk]
        )
        chunks, total_length = cursor.fetchone()
    return chunks, total_length


def _statistics(collection: Collection) -> Iterator[Inconsistency]:
    chunks, total_length = counted(collection)
    kept = CollectionStatistics.objects.filter(pk=collection.pk).first() or CollectionStatistics()
    tolerated = LENGTH_TOLERANCE * max(1.0, total_length)
    if kept.chunks != chunks or abs(kept.total_length - total_length) > tolerated:
        stored = f"{kept.chunks} passages of length {kept.total_length:g}, counted {chunks} of {total_length:g}"
        yield Inconsistency(ProblemKind.STATISTICS, collection.slug, 1, (stored,))
    if chunks and kept.weighting != weighting():
        yield Inconsistency(ProblemKind.TERM_WEIGHTS, collection.slug, 1, (kept.weighting or "none",))


def _orphaned_vectors() -> list[str]:
    if is_distributed():
        return []  # as above
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM retrieval_chunkembedding AS vector "
            "WHERE NOT EXISTS (SELECT FROM retrieval_chunk WHERE id = vector.chunk_id) ORDER BY id"
        )
        return [str(pk) for (pk,) in cursor.fetchall()]


def unreadable_documents(documents: QuerySet[Document]) -> list[int]:
    """Ids of the documents whose text, cut at a passage's offsets, is not the passage; one being read is left out."""
    wrong = []
    texts = DocumentText.objects.filter(document__in=settled(documents)).order_by("pk").values_list("pk", "text")
    for pk, text in texts.iterator(chunk_size=50):
        places = Chunk.objects.filter(document=pk).order_by().values_list("start", "end", "content")
        if any(text[start:end] != content for start, end, content in places):
            wrong.append(pk)
    return wrong


def _damaged_files(documents: QuerySet[Document]) -> dict[ProblemKind, list[str]]:
    """Ids of the documents whose file the storage does not have, and of those whose file has not the uploaded size."""
    damaged: dict[ProblemKind, list[str]] = {ProblemKind.MISSING_FILES: [], ProblemKind.DAMAGED_FILES: []}
    for document in documents.exclude(file="").order_by("pk").only("pk", "file", "size_bytes"):
        if not has_whole_file(document):
            exists = document.file.storage.exists(str(document.file.name))
            damaged[ProblemKind.DAMAGED_FILES if exists else ProblemKind.MISSING_FILES].append(str(document.pk))
    return damaged


def has_whole_file(document: Document) -> bool:
    """Whether the document's file is there, as long as it was when it was uploaded."""
    try:
        return bool(document.file) and document.file.size == document.size_bytes
    except FileNotFoundError:
        return False


def orphaned_files(storage: Storage) -> list[str]:
    """Names of stored uploads that no document names, sorted: an hour old or more, or empty.

    None of a bucket, which another site may use too.
    """
    if not isinstance(storage, FileSystemStorage):
        return []
    try:
        _, stored = storage.listdir(UPLOAD_FOLDER)
    except FileNotFoundError:
        return []
    named = set(Document.objects.values_list("file", flat=True))
    now = timezone.now()
    unnamed = sorted({f"{UPLOAD_FOLDER}/{name}" for name in stored} - named)

    def is_left(name: str) -> bool:
        age = now - storage.get_modified_time(name)
        return age >= ORPHANED_AFTER or (age >= EMPTY_AFTER and storage.size(name) == 0)

    return [name for name in unnamed if is_left(name)]


def _list(kind: ProblemKind, collection: str, names: list[str]) -> Inconsistency:
    return Inconsistency(kind, collection, len(names), tuple(names[:EXAMPLES]))


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
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM retrieval_chunkembedding AS vector "
                "WHERE NOT EXISTS (SELECT FROM retrieval_chunk WHERE id = vector.chunk_id)"
            )
    for collection in collections(ProblemKind.STATISTICS, ProblemKind.LEXEMES):
        recount(collection)
    for collection in collections(ProblemKind.STATISTICS, ProblemKind.TERM_WEIGHTS):
        reweigh(collection)
    for collection in collections(
        ProblemKind.STALE_TEXT, ProblemKind.UNREADABLE_OFFSETS, ProblemKind.EMPTY_DOCUMENTS, ProblemKind.CHUNK_COUNTS
    ):
        _read_again(collection)
    if ProblemKind.ORPHANED_FILES in kinds:
        storage = Document.file.field.storage
        for name in orphaned_files(storage):
            logger.info("Deleting the file %s, which no document names.", name)
            storage.delete(name)
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


def reconcile(*, repair: bool = False) -> list[Inconsistency]:
    """What :func:`check` found, each with whether it was repaired; the result is kept as an :class:`IndexCheck`.

    With ``repair``, what was found is repaired and checked again: ``repaired`` is what the second check says.

    Raises: ImproperEmbedder, and EmbeddingFailed when passages without a vector could not be embedded.
    """
    started = time.perf_counter()
    found = check()
    if repair and found:
        repair_found(found)
        left = {(kept.kind, kept.collection) for kept in check()}
        found = [replace(before, repaired=(before.kind, before.collection) not in left) for before in found]
    for inconsistency in found:
        place = f" in {inconsistency.collection}" if inconsistency.collection else ""
        outcome = "repaired" if inconsistency.repaired else "not repaired"
        description = DESCRIPTIONS[inconsistency.kind]
        logger.warning("Index check: %d %s%s, %s.", inconsistency.count, description, place, outcome)
    if not found:
        logger.info("Index check: everything agrees.")
    IndexCheck.objects.create(
        seconds=time.perf_counter() - started, inconsistencies=[asdict(inconsistency) for inconsistency in found]
    )
    outdated = list(IndexCheck.objects.values_list("pk", flat=True)[CHECKS_KEPT:])
    IndexCheck.objects.filter(pk__in=outdated).delete()
    return found


def last_counts() -> dict[str, int]:
    """What the last check found and did not repair, by kind; 0 for what it did not find, empty before the first one."""
    last = IndexCheck.objects.first()
    if last is None:
        return {}
    counts = dict.fromkeys((kind.value for kind in ProblemKind), 0)
    for inconsistency in last.inconsistencies:
        if not inconsistency["repaired"]:
            kind = inconsistency["kind"]
            counts[kind] = counts.get(kind, 0) + inconsistency["count"]
    return counts
