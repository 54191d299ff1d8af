"""Write a whole collection in one transaction: documents, texts, chunks and statistics.

Words and lengths are counted once, at the end, because counting after each of thousands of short texts takes minutes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from django.db import connection, transaction
from django.utils import timezone

from retrieval.documents.reconciliation import recount_statistics
from retrieval.index.chunk_writer import (
    FIELD_BOOSTS,
    LARGEST_DRIFT,
    NewChunk,
    compute_mean_chunk_length,
    describe_bm25_parameters,
    find_text_search_configuration,
    insert_chunks,
    lock_collection_statistics,
    recompute_term_weights,
)
from retrieval.models import (
    Chunk,
    ChunkEmbedding,
    Collection,
    CollectionStatistics,
    Document,
    DocumentText,
    Embedder,
    Lexeme,
)
from retrieval.text.terms import ANALYSIS_VERSION

BATCH = 100


@dataclass(frozen=True, slots=True)
class DocumentToWrite:
    """A document to write. ``index_fingerprint`` is the result of `compute_index_fingerprint`."""

    source: str
    title: str
    language: str
    text: str
    content_hash: str
    index_fingerprint: str
    chunks: tuple[NewChunk, ...]


def replace_documents(
    collection: Collection, documents: Iterable[DocumentToWrite], embedder: Embedder, *, exact: bool = True
) -> None:
    """Replace all documents of the collection, in one transaction.

    Term weights depend on the mean length of all chunks, which is estimated from the first document. If the estimate
    was wrong (if not ``exact``: by more than a tenth), all weights are computed again.
    """
    reference_length = 0.0
    with transaction.atomic():
        delete_documents(collection)
        left = iter(documents)
        while batch := list(islice(left, BATCH)):
            for document, new in zip(_save_documents(collection, batch), batch, strict=True):
                added = list(enumerate(new.chunks))
                configuration = find_text_search_configuration(document)
                reference_length = reference_length or compute_mean_chunk_length(document, added, configuration)
                insert_chunks(document, added, embedder, reference_length, configuration)
        statistics = lock_collection_statistics(collection.pk)
        statistics.reference_length, statistics.weighting = reference_length, describe_bm25_parameters()
        recount_statistics(statistics)
        recompute_term_weights(collection, largest_drift=0.0 if exact else LARGEST_DRIFT)


def compute_index_fingerprint(collection: Collection, embedder: Embedder, *parts: object) -> str:
    """Return a hash of everything on which the collection's index depends.

    The hash includes the further values ``parts``, such as the settings of the chunking.
    """
    site = (
        ANALYSIS_VERSION,
        embedder.name,
        str(collection.text_search_configuration),
        FIELD_BOOSTS,
        describe_bm25_parameters(),
    )
    return hashlib.sha256(repr((*site, *parts)).encode()).hexdigest()


def is_fully_indexed(collection: Collection, embedder: Embedder, chunks: int) -> bool:
    statistics = CollectionStatistics.objects.filter(pk=collection.pk).first()
    stored = Chunk.objects.filter(collection=collection).count()
    vectors = ChunkEmbedding.objects.filter(collection=collection, embedder=embedder).count()
    return statistics is not None and chunks == statistics.chunks == stored == vectors


def vacuum_tables() -> None:
    """Run VACUUM and ANALYZE now, so that PostgreSQL does not run them while searches are timed."""
    vacuum = "ANALYZE" if connection.in_atomic_block else "VACUUM (ANALYZE)"
    with connection.cursor() as cursor:
        for model in (Chunk, ChunkEmbedding, Document, DocumentText, Lexeme):
            cursor.execute(f"{vacuum} {model._meta.db_table}")


def delete_documents(collection: Collection) -> None:
    with transaction.atomic():
        # Deleting a document subtracts the words of its chunks one by one, so the chunks are deleted first.
        Chunk.objects.filter(collection=collection).only("pk").delete()
        Lexeme.objects.filter(collection=collection).delete()
        Document.objects.filter(collection=collection).only(
            "pk", "collection_id", "file", "title", "source", "created_at"
        ).delete()
        CollectionStatistics.objects.filter(pk=collection.pk).delete()


def _save_documents(collection: Collection, documents: list[DocumentToWrite]) -> list[Document]:
    now = timezone.now()
    saved = Document.objects.bulk_create(
        Document(
            collection=collection,
            source=new.source,
            title=new.title,
            language=new.language,
            media_type="text/plain",
            content_hash=new.content_hash,
            size_bytes=len(new.text.encode()),
            status=Document.Status.READY,
            progress_percent=100,
            chunk_count=len(new.chunks),
            ingested_at=now,
        )
        for new in documents
    )
    DocumentText.objects.bulk_create(
        DocumentText(document=document, content_hash=new.content_hash, recipe=new.index_fingerprint, text=new.text)
        for document, new in zip(saved, documents, strict=True)
    )
    return saved
