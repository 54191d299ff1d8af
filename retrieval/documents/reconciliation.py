"""Compare the search index with passages, documents and files each night, and repair differences.

A check reads one snapshot without locks. A repair locks documents before the collection's statistics, like all writers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any

from django.core.files.storage import FileSystemStorage
from django.db import connection, models, transaction
from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from retrieval.documents import submission
from retrieval.documents.storage import get_document_storage
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import describe_bm25_parameters, lock_collection_statistics, recompute_term_weights
from retrieval.index.reembedding import reembed
from retrieval.models import Chunk, ChunkEmbedding, Collection, CollectionStatistics, Document, DocumentText, Draft
from retrieval.models.chunk import IndexCheck

logger = logging.getLogger(__name__)

CHECKS_KEPT = 30
# A file is stored before its document's row is committed, so only older files without a row are orphaned.
ORPHANED_AFTER = timedelta(hours=1)
UPLOAD_FOLDER = "documents"
EXAMPLES = 5
# Largest relative difference between sums of the same numbers in different orders.
LENGTH_TOLERANCE = 1e-6


class ProblemKind(models.TextChoices):
    MISSING_VECTORS = "missing_vectors", _("passages without vectors of the current embedder")
    STATISTICS = "statistics", _("number or length of passages, as counted again")
    LEXEMES = "lexemes", _("words with a wrong document frequency")
    TERM_WEIGHTS = "term_weights", _("outdated term weights")
    UNFIT_TEXT = (
        "unfit_text",
        _("documents whose text or passages are missing, or belong to another version of the file"),
    )
    MISSING_FILES = "missing_files", _("documents whose file is missing in the storage, or has another size")
    ORPHANED_FILES = "orphaned_files", _("stored files that no document names")


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """Differences of one kind between the index and the documents of a collection.

    ``collection`` is a slug, or empty for the whole site. ``examples`` are a few ids, words or file names.
    """

    kind: ProblemKind
    collection: str
    count: int
    examples: tuple[str, ...] = ()
    repaired: bool = False


def find_inconsistencies() -> list[Inconsistency]:
    """Return all differences between index and documents, sorted by collection.

    Do not call it in a transaction. Raises: EmbedderMisconfigured if another embedder made the stored vectors.
    """
    embedder = active_embedder()
    found: list[tuple[ProblemKind, str, Sequence[Any]]] = []
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        for collection in Collection.objects.exclude(draft__status__in=Draft.ENDED).order_by("slug"):
            found += ((kind, collection.slug, names) for kind, names in _check_collection(collection, embedder.pk))
        found.append((ProblemKind.ORPHANED_FILES, "", find_orphaned_files()))
    return [
        Inconsistency(kind, slug, len(names), tuple(map(str, names[:EXAMPLES]))) for kind, slug, names in found if names
    ]


def _check_collection(collection: Collection, embedder_id: int) -> Iterator[tuple[ProblemKind, Sequence[Any]]]:
    chunks = Chunk.objects.filter(collection=collection)
    own = ChunkEmbedding.objects.filter(chunk=OuterRef("pk"), document=OuterRef("document"), embedder=embedder_id)
    yield ProblemKind.MISSING_VECTORS, _list_ids(chunks.filter(~Exists(own)))
    number, total_length = _count_passages(collection)
    kept = CollectionStatistics.objects.filter(pk=collection.pk).first() or CollectionStatistics()
    if kept.chunks != number or abs(kept.total_length - total_length) > LENGTH_TOLERANCE * max(1.0, total_length):
        stored = f"{kept.chunks} passages of length {kept.total_length:g}, counted {number} of {total_length:g}"
        yield ProblemKind.STATISTICS, [stored]
    with connection.cursor() as cursor:
        cursor.execute(_WRONG_LEXEMES, {"collection": collection.pk})
        yield ProblemKind.LEXEMES, [lexeme for (lexeme,) in cursor.fetchall()]
    if number and kept.weighting != describe_bm25_parameters():
        yield ProblemKind.TERM_WEIGHTS, [kept.weighting or "none"]
    yield ProblemKind.UNFIT_TEXT, find_inconsistent_documents(collection)
    with_files = Document.objects.filter(collection=collection).exclude(file="").order_by("pk")
    files = with_files.only("pk", "file", "size_bytes")
    yield ProblemKind.MISSING_FILES, [document.pk for document in files if not has_whole_file(document)]


def find_inconsistent_documents(collection: Collection) -> list[int]:
    """Return the ids of processed documents whose text or passages are missing, or belong to another file version."""
    settled = Document.objects.filter(collection=collection)
    settled = settled.exclude(status__in=[Document.Status.PENDING, Document.Status.PROCESSING]).order_by()
    ready = settled.filter(status=Document.Status.READY)
    unfit = {
        *_list_ids(ready.exclude(text__content_hash=F("content_hash"))),
        *_list_ids(ready.filter(chunks=None).exclude(file="")),
    }
    counted = dict(Chunk.objects.filter(document__in=settled).order_by().values_list("document").annotate(Count("pk")))
    promised = settled.values_list("pk", "chunk_count")
    return sorted(unfit | {pk for pk, number in promised if counted.get(pk, 0) != number})


def has_whole_file(document: Document) -> bool:
    """Return whether the document's file exists with its original size."""
    try:
        return bool(document.file) and document.file.size == document.size_bytes
    except FileNotFoundError:
        return False


def find_orphaned_files() -> list[str]:
    """Return the names of stored files that belong to no document, sorted.

    Object storage (a bucket) is not searched.
    """
    storage = get_document_storage()
    if not isinstance(storage, FileSystemStorage):
        return []
    try:
        _folders, stored = storage.listdir(UPLOAD_FOLDER)
    except FileNotFoundError:
        return []
    named = set(Document.objects.values_list("file", flat=True))
    before = timezone.now() - ORPHANED_AFTER
    left = {f"{UPLOAD_FOLDER}/{name}" for name in stored} - named
    return [name for name in sorted(left) if storage.get_modified_time(name) <= before]


_COUNTED_LEXEMES = (
    "ts_stat(format('SELECT search_vector FROM retrieval_chunk WHERE collection_id = %%s', %(collection)s::bigint))"
)
_WRONG_LEXEMES = f"""
    SELECT coalesce(known.lexeme, fresh.word)
    FROM (SELECT lexeme, document_frequency FROM retrieval_lexeme WHERE collection_id = %(collection)s) AS known
    FULL JOIN {_COUNTED_LEXEMES} AS fresh ON fresh.word = known.lexeme
    WHERE known.document_frequency IS DISTINCT FROM fresh.ndoc
    ORDER BY 1
"""
# All writers must lock lexeme rows in the same order.
_COUNT_LEXEMES = f"""
    WITH fresh AS MATERIALIZED (
        SELECT word, ndoc FROM {_COUNTED_LEXEMES}
    ), gone AS (
        DELETE FROM retrieval_lexeme AS known
        WHERE collection_id = %(collection)s AND NOT EXISTS (SELECT FROM fresh WHERE word = known.lexeme)
    )
    INSERT INTO retrieval_lexeme AS known (collection_id, lexeme, document_frequency)
    SELECT %(collection)s, word, ndoc FROM fresh ORDER BY word
    ON CONFLICT (collection_id, lexeme) DO UPDATE SET document_frequency = excluded.document_frequency
    WHERE known.document_frequency <> excluded.document_frequency
"""


def _list_ids(rows: QuerySet[Any]) -> list[int]:
    return list(rows.order_by("pk").values_list("pk", flat=True))


def _count_passages(collection: Collection) -> tuple[int, float]:
    counted = Chunk.objects.filter(collection=collection).aggregate(Count("pk"), length=models.Sum("length"))
    return counted["pk__count"], counted["length"] or 0.0


def repair_inconsistencies(found: Sequence[Inconsistency]) -> None:
    """Repair the differences ``found``. Raises: EmbeddingFailed, after all other repairs."""
    for one in found:
        collection = Collection.objects.filter(slug=one.collection).first()
        if one.kind == ProblemKind.ORPHANED_FILES:
            for name in find_orphaned_files():
                logger.info("Deleting the file %s, which no document names.", name)
                get_document_storage().delete(name)
        elif collection is None:
            continue  # deleted since the check
        elif one.kind in (ProblemKind.STATISTICS, ProblemKind.LEXEMES):
            with transaction.atomic():
                recount_statistics(lock_collection_statistics(collection.pk))
            recompute_term_weights(collection)
        elif one.kind == ProblemKind.TERM_WEIGHTS:
            recompute_term_weights(collection)
        elif one.kind == ProblemKind.UNFIT_TEXT:
            for pk in find_inconsistent_documents(collection):
                _repair_document(pk)
    if any(one.kind == ProblemKind.MISSING_VECTORS for one in found):
        # `find_inconsistencies` has checked that the configured embedder is in use.
        reembed(lambda *_: None)


def recount_statistics(statistics: CollectionStatistics) -> None:
    """Count the collection's passages and lexemes again, and save them in ``statistics``.

    The caller must have locked this row.
    """
    statistics.chunks, statistics.total_length = _count_passages(statistics.collection)
    chunks = Chunk.objects.filter(collection=statistics.collection_id).exclude(configuration="")
    statistics.configurations = " ".join(
        chunks.order_by("configuration").values_list("configuration", flat=True).distinct()
    )
    statistics.version += 1
    statistics.save()
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_LEXEMES, {"collection": statistics.collection_id})


@transaction.atomic
def _repair_document(pk: int) -> None:
    document = Document.objects.select_for_update(of=("self",)).filter(pk=pk).first()
    if document is None or document.status in (Document.Status.PENDING, Document.Status.PROCESSING):
        return
    if has_whole_file(document):
        # Ingestion replaces all passages if ``recipe`` is empty.
        DocumentText.objects.filter(pk=pk).update(recipe="")
        submission.requeue_document(document)
        return
    logger.warning("Document %s cannot be read again, its file is gone or damaged: upload it again.", pk)
    document.chunk_count = document.chunks.count()
    document.save(update_fields=["chunk_count"])


def reconcile_index(*, repair: bool = False) -> list[Inconsistency]:
    """Store and return the differences between index and documents. If ``repair`` is set, repair them and check again.

    Raises: EmbedderMisconfigured; EmbeddingFailed if passages without a vector could not be embedded.
    """
    started = time.perf_counter()
    found = find_inconsistencies()
    if repair and found:
        repair_inconsistencies(found)
        left = {(kept.kind, kept.collection) for kept in find_inconsistencies()}
        found = [replace(before, repaired=(before.kind, before.collection) not in left) for before in found]
    for one in found:
        place = f" in {one.collection}" if one.collection else ""
        outcome = "repaired" if one.repaired else "not repaired"
        logger.warning("Index check: %d %s%s, %s.", one.count, one.kind.label, place, outcome)
    if not found:
        logger.info("Index check: everything agrees.")
    IndexCheck.objects.create(seconds=time.perf_counter() - started, inconsistencies=[asdict(one) for one in found])
    outdated = list(IndexCheck.objects.values_list("pk", flat=True)[CHECKS_KEPT:])
    IndexCheck.objects.filter(pk__in=outdated).delete()
    return found


def read_inconsistency_counts() -> dict[str, int]:
    """Return by kind how many differences the last check found but did not repair; {} before the first check."""
    last = IndexCheck.objects.first()
    if last is None:
        return {}
    counts = dict.fromkeys(ProblemKind.values, 0)
    for inconsistency in last.inconsistencies:
        if not inconsistency["repaired"]:
            counts[inconsistency["kind"]] = counts.get(inconsistency["kind"], 0) + inconsistency["count"]
    return counts
