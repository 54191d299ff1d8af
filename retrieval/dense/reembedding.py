"""From one embedder to another, while the site goes on searching the old one's vectors."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from django.db.models import Exists, OuterRef
from pgvector import HalfVector

from retrieval import conf
from retrieval.dense.encoding import encode_passages
from retrieval.dense.index import create_index, drop_index
from retrieval.ingest.chunking import embedding_text
from retrieval.models import Chunk, ChunkEmbedding, CollectionStatistics, Embedder
from retrieval.protocols import TokenEmbedder

BATCH = 64


def reembed(progress: Callable[[int, int], None]) -> Embedder:
    """Make the configured embedder the one that is searched, and return its row.

    Passages are embedded a batch at a time, so that an interrupted run goes on where it was. The switch itself is one
    short transaction that no writer can slip a passage past. The vectors of the embedder before stay until
    :func:`drop_unused`. Raises: EmbeddingFailed.
    """
    configured = conf.embedder()
    row, _ = Embedder.objects.get_or_create(name=configured.name, defaults={"dimension": configured.dimension})
    total = Chunk.objects.count()
    while batch := _missing(row):
        _embed(row, batch)
        progress(min(total, ChunkEmbedding.objects.filter(embedder=row).count()), total)
    create_index(row)
    with transaction.atomic():
        # Whoever writes passages locks these rows first.
        list(CollectionStatistics.objects.select_for_update().order_by("pk"))
        while batch := _missing(row):
            _embed(row, batch)
        Embedder.objects.exclude(pk=row.pk).update(is_active=False)
        Embedder.objects.filter(pk=row.pk).update(is_active=True)
    row.refresh_from_db()
    return row


def drop_unused() -> int:
    """Delete the vectors and indexes of embedders that are not searched; returns how many embedders that were."""
    unused = list(Embedder.objects.filter(is_active=False))
    for row in unused:
        drop_index(row)
        row.delete()
    return len(unused)


def _missing(row: Embedder) -> list[Chunk]:
    encoded = ChunkEmbedding.objects.filter(chunk=OuterRef("pk"), embedder=row)
    if isinstance(conf.embedder(), TokenEmbedder):
        encoded = encoded.filter(token_signs__isnull=False)
    chunks = Chunk.objects.filter(~Exists(encoded)).select_related("document")
    return list(chunks.defer("search_vector", "bm25").order_by("pk")[:BATCH])


def _embed(row: Embedder, chunks: list[Chunk]) -> None:
    texts = [embedding_text(chunk.document.title, chunk.heading_path, chunk.content) for chunk in chunks]
    encodings = encode_passages(texts)
    with transaction.atomic():
        # A passage that was deleted meanwhile needs no vector.
        alive = set(
            Chunk.objects.select_for_update().filter(pk__in=[c.pk for c in chunks]).values_list("pk", flat=True)
        )
        ChunkEmbedding.objects.bulk_create(
            (
                ChunkEmbedding(
                    chunk_id=chunk.pk,
                    document_id=chunk.document_id,
                    collection_id=chunk.collection_id,
                    embedder=row,
                    vector=HalfVector(encoding.vector),
                    token_signs=encoding.token_signs,
                )
                for chunk, encoding in zip(chunks, encodings, strict=True)
                if chunk.pk in alive
            ),
            update_conflicts=True,
            unique_fields=["chunk", "embedder"],
            update_fields=["vector", "token_signs"],
        )
