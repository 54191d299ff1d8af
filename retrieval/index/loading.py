"""Vectors of very many passages that were read without: made in order, written with COPY, and indexed afterwards.

Documents that await their vectors are found by their words meanwhile, and every search that they could be part of says
so. Where there is more to add than is there, the vectors are gathered under an embedder of their own, which nobody
searches: the index in service answers as before, none is kept row by row, and in the end one statement changes which of
the two is searched. Whatever a killed process has written is there for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from retrieval import conf
from retrieval.exceptions import RetrievalError
from retrieval.index.active import active_embedder
from retrieval.index.reembedding import drop_unused, encode_missing, settle_documents
from retrieval.index.vector_index import build_index
from retrieval.models import Chunk, ChunkEmbedding, CollectionStatistics, Document, Embedder

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
