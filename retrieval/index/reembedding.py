"""Compute the vectors of all passages with another embedder, while searches use the old vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef

from retrieval.index import embedder_choice
from retrieval.index.chunk_writer import copy_vectors
from retrieval.index.vector_index import build_index, drop_index
from retrieval.models import Chunk, ChunkEmbedding, CollectionStatistics, Embedder
from retrieval.protocols import TextEmbedder
from retrieval.text.chunking import build_embedding_text

if TYPE_CHECKING:
    from retrieval.types import Vectors

Report = Callable[[str, int, int], None]

BATCH = 64


def reembed(report: Report) -> Embedder:
    """Compute all vectors with `get_embedder_for_new_vectors`, and switch the site to it. Return the embedder's row.

    Raises: EmbeddingFailed.
    """
    wanted = embedder_choice.get_embedder_for_new_vectors()
    return switch_embedder(encode_passages_and_build_index(wanted, report), wanted, report)


def encode_passages_and_build_index(
    embedder: TextEmbedder, report: Report, options: Mapping[str, Any] | None = None
) -> Embedder:
    """Compute missing vectors with ``embedder``, build its vector index, and return its row.

    ``options`` are stored in the row; None leaves them unchanged. Raises: EmbeddingFailed.
    """
    row, _ = Embedder.objects.get_or_create(name=embedder.name, defaults={"dimension": embedder.dimension})
    if options is not None and row.options != options:
        row.options = dict(options)
        row.save(update_fields=["options"])
    _encode_missing_passages(row, embedder, report)
    report("vector index", 0, 1)
    build_index(row)
    return row


def switch_embedder(row: Embedder, wanted: TextEmbedder, report: Report) -> Embedder:
    """Make ``row`` the active embedder, and return it. ``wanted`` computes missing vectors.

    Running processes search the old vectors until they restart. Raises: EmbeddingFailed.
    """
    with transaction.atomic():
        # Writers of passages lock these rows too, so no passage is written until this transaction ends.
        list(CollectionStatistics.objects.select_for_update().order_by("pk"))
        _encode_missing_passages(row, wanted, report)
        Embedder.objects.exclude(pk=row.pk).update(is_active=False)
        Embedder.objects.filter(pk=row.pk).update(is_active=True)
        CollectionStatistics.objects.update(version=F("version") + 1)
    row.refresh_from_db()
    return row


def drop_unused_embedders() -> int:
    """Delete inactive embedders with their vectors and indexes, and return how many were deleted."""
    unused = list(Embedder.objects.filter(is_active=False))
    for row in unused:
        drop_index(row)
        row.delete()
    return len(unused)


def _encode_missing_passages(target: Embedder, embedder: TextEmbedder, report: Report) -> None:
    encoded = ChunkEmbedding.objects.filter(chunk=OuterRef("pk"), document=OuterRef("document"), embedder=target)
    missing = Chunk.objects.filter(~Exists(encoded))
    total, last = Chunk.objects.count(), 0
    done = total - missing.count()
    wanted = missing.prefetch_related("document").defer("search_vector", "bm25", "blocks").order_by("pk")
    while batch := list(wanted.filter(pk__gt=last)[:BATCH]):
        last = batch[-1].pk
        texts = [build_embedding_text(chunk.document.title, chunk.heading_path, chunk.content) for chunk in batch]
        _write_vectors(target, batch, embedder.embed_documents(texts))
        done += len(batch)
        report("passages", min(done, total), total)


@transaction.atomic
def _write_vectors(target: Embedder, chunks: list[Chunk], vectors: Vectors) -> None:
    of_document: dict[int, list[int]] = {}
    for chunk in chunks:
        of_document.setdefault(chunk.document_id, []).append(chunk.pk)
    # Documents are locked one by one, because a distributed database cannot lock rows on several nodes in one
    # statement.
    alive: set[int] = set()
    for document, ids in sorted(of_document.items()):
        held = Chunk.objects.select_for_update(no_key=True).filter(document=document, pk__in=ids)
        alive.update(held.values_list("pk", flat=True))
    ChunkEmbedding.objects.filter(chunk__in=alive, embedder=target).delete()
    copy_vectors(
        (
            (chunk.pk, chunk.document_id, chunk.collection_id, vector)
            for chunk, vector in zip(chunks, vectors, strict=True)
            if chunk.pk in alive
        ),
        target,
    )
