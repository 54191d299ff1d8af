"""Vectors made anew: for another embedder, while the old one's are searched, and in bulk for very many passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from retrieval import conf
from retrieval.exceptions import RetrievalError
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import copy_vectors
from retrieval.index.vector_index import build_index, drop_index
from retrieval.models import Chunk, ChunkEmbedding, CollectionStatistics, Document, Embedder
from retrieval.protocols import TextEmbedder
from retrieval.text.chunking import embedding_text

if TYPE_CHECKING:
    from retrieval.types import Vectors

BATCH = 64


def reembed(report: Callable[[str, int, int], None]) -> Embedder:
    """Make the embedder that the settings name the one that is searched, and return its row; where they name none, it
    is the one of a new site.

    Passages are embedded a batch at a time, so that an interrupted run goes on where it was. The switch itself is one
    short transaction that no writer can slip a passage past. Until they are restarted, processes that run go on with
    the vectors of the embedder before, which stay until :func:`drop_unused`. Raises: EmbeddingFailed.
    """
    wanted = conf.new_embedder()
    row, _ = Embedder.objects.get_or_create(name=wanted.name, defaults={"dimension": wanted.dimension})

    def progress(done: int, total: int) -> None:
        report("passages", done, total)

    encode_missing(Chunk.objects.all(), row, wanted, progress)
    build_index(row, report)
    with transaction.atomic():
        # Whoever writes passages locks these rows first.
        list(CollectionStatistics.objects.select_for_update().order_by("pk"))
        encode_missing(Chunk.objects.all(), row, wanted, progress)
        Embedder.objects.exclude(pk=row.pk).update(is_active=False)
        Embedder.objects.filter(pk=row.pk).update(is_active=True)
    settle_documents(row)
    row.refresh_from_db()
    return row


def drop_unused() -> int:
    """Delete the vectors and indexes of embedders that are not searched; returns how many embedders that were."""
    unused = list(Embedder.objects.filter(is_active=False))
    for row in unused:
        drop_index(row)
        row.delete()
    return len(unused)


def encode_missing(
    chunks: QuerySet[Chunk],
    target: Embedder,
    embedder: TextEmbedder,
    progress: Callable[[int, int], None],
) -> None:
    """Encode those of the passages that ``target``, the embedder's row, has no encoding of, and store it.

    Outside a transaction, one batch is written while the next is encoded. What is stored stays: an interrupted run is
    continued by the next one. Raises: EmbeddingFailed.
    """
    missing = chunks.filter(~Exists(_encoded(target)))
    total, done, last = missing.count(), 0, 0
    wanted = missing.prefetch_related("document").defer("search_vector", "bm25", "blocks").order_by("pk")
    writing: Future[None] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="vectors") as writer:
        while batch := list(wanted.filter(pk__gt=last)[:BATCH]):
            last = batch[-1].pk
            texts = [embedding_text(chunk.document.title, chunk.heading_path, chunk.content) for chunk in batch]
            vectors = embedder.embed_documents(texts)
            if writing is not None:
                writing.result()
            if connection.in_atomic_block:
                _write(target, batch, vectors)
            else:
                writing = writer.submit(_write_and_close, target, batch, vectors)
            done += len(batch)
            progress(min(done, total), total)
        if writing is not None:
            writing.result()


def settle_documents(active: Embedder) -> None:
    """Documents whose passages all have a vector await none. What searches have kept of their collections is stale."""
    awaiting = Document.objects.filter(awaits_vectors=True)
    with transaction.atomic():
        unencoded = Chunk.objects.filter(~Exists(_encoded(active)), document__in=awaiting)
        waiting = awaiting.exclude(pk__in=list(unencoded.order_by().values_list("document", flat=True).distinct()))
        settled = list(waiting.select_for_update(no_key=True).order_by("pk").values_list("pk", "collection"))
        Document.objects.filter(pk__in=[pk for pk, _ in settled]).update(awaits_vectors=False)
        collections = CollectionStatistics.objects.filter(pk__in={collection for _, collection in settled})
        list(collections.select_for_update().order_by("pk"))
        collections.update(version=F("version") + 1)


def _encoded(row: Embedder) -> QuerySet[ChunkEmbedding]:
    return ChunkEmbedding.objects.filter(chunk=OuterRef("pk"), document=OuterRef("document"), embedder=row)


def _write_and_close(target: Embedder, chunks: list[Chunk], vectors: Vectors) -> None:
    try:
        _write(target, chunks, vectors)
    finally:
        connection.close()


def _write(target: Embedder, chunks: list[Chunk], vectors: Vectors) -> None:
    with transaction.atomic():
        of_document: dict[int, list[int]] = {}
        for chunk in chunks:
            of_document.setdefault(chunk.document_id, []).append(chunk.pk)
        # A passage that was deleted meanwhile needs no vector. Of one document at a time: rows on several nodes of a
        # distributed database cannot be locked by one statement.
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


# Vectors of very many passages that were read without: made in order, written with COPY, and indexed afterwards.
#
# Documents that await their vectors are found by their words meanwhile, and every search that they could be part of
# says so. Where there is more to add than is there, the vectors are gathered under an embedder of their own, which
# nobody searches: the index in service answers as before, none is kept row by row, and in the end one statement
# changes which of the two is searched. Whatever a killed process has written is there for the next one.

Report = Callable[[str, int, int], None]

# Fewer are added to the index in service sooner than a new one is built.
FEW = 2_000
_LOADING_LOCK = 6_120_583_094_416_007_113


class AlreadyLoading(RetrievalError):
    """Another process loads documents in bulk. For the operator."""


@contextmanager
def loading() -> Iterator[None]:
    """One process of the site loads in bulk at a time. Raises: AlreadyLoading."""
    # A connection of its own: the lock is held until it is closed, whatever becomes of the others.
    holder = connection.copy()
    try:
        with holder.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOADING_LOCK])
            if not cursor.fetchone()[0]:
                raise AlreadyLoading("Documents are being loaded in bulk by another process: wait for its end.")
            try:
                yield
            finally:
                # Closed, the session ends a moment later.
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOADING_LOCK])
    finally:
        holder.close()


def is_loading() -> bool:
    """Whether a process loads in bulk at this moment, and will make the vectors that documents await."""
    with connection.cursor() as cursor:
        # The two halves of the number, as PostgreSQL lists them.
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND (classid::bigint << 32) + objid::bigint = %s)",
            [_LOADING_LOCK],
        )
        return bool(cursor.fetchone()[0])


def load_vectors(report: Report) -> int:
    """Make the vectors that documents await, and return how many passages got theirs.

    To be called by the process that is :func:`loading`, outside any transaction. Raises: EmbeddingFailed.
    """
    active = active_embedder()
    gathered = Embedder.objects.filter(name=_gathering_name(active)).first()
    awaiting = _unencoded(active).count()
    if not awaiting:
        settle_documents(active)
        return 0
    if gathered is None and awaiting > max(FEW, ChunkEmbedding.objects.filter(embedder=active).count()):
        gathered = Embedder.objects.create(name=_gathering_name(active), dimension=active.dimension)
    encode_missing(
        _unencoded(active), gathered or active, conf.embedder(), lambda done, total: report("vectors", done, total)
    )
    if gathered is not None:
        _copy_encoded(active, gathered)
        build_index(gathered, report)
        _replace(active, gathered)
        drop_unused()
    settle_documents(active_embedder())
    return awaiting


def _unencoded(active: Embedder) -> QuerySet[Chunk]:
    encoded = ChunkEmbedding.objects.filter(chunk=OuterRef("pk"), document=OuterRef("document"), embedder=active)
    return Chunk.objects.filter(~Exists(encoded), document__in=Document.objects.filter(awaits_vectors=True))


def _gathering_name(active: Embedder) -> str:
    return f"{active.name} (being loaded)"


def _copy_encoded(active: Embedder, gathered: Embedder) -> None:
    """Give ``gathered`` the vectors of ``active`` that it lacks."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO retrieval_chunkembedding
                (chunk_id, document_id, collection_id, embedder_id, vector)
            SELECT chunk_id, document_id, collection_id, %(gathered)s, vector
            FROM retrieval_chunkembedding AS encoded
            WHERE embedder_id = %(active)s AND NOT EXISTS (
                SELECT FROM retrieval_chunkembedding
                WHERE chunk_id = encoded.chunk_id AND document_id = encoded.document_id
                    AND embedder_id = %(gathered)s
            )
            ORDER BY chunk_id
            """,
            {"active": active.pk, "gathered": gathered.pk},
        )


def _replace(active: Embedder, gathered: Embedder) -> None:
    """Have ``gathered`` searched in place of ``active``, in one transaction that no writer of passages is in."""
    with transaction.atomic():
        list(CollectionStatistics.objects.select_for_update().order_by("pk"))
        # What was written while the index was built.
        _copy_encoded(active, gathered)
        Embedder.objects.filter(pk=active.pk).update(name=f"{active.name} (before #{gathered.pk})", is_active=False)
        Embedder.objects.filter(pk=gathered.pk).update(name=active.name, is_active=True)
        CollectionStatistics.objects.update(version=F("version") + 1)
