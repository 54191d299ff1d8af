"""A document of one collection, made the same in another: with its file, its passages, their questions and vectors.

Nothing is read or embedded again.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connection, transaction

from retrieval.ingest.submission import forget_file
from retrieval.ingest.writing import count_lexemes, delete_chunks, lock_statistics
from retrieval.lexical.fields import FIELD_BOOSTS
from retrieval.models import Collection, CollectionStatistics, Document, DocumentText

_COPIED = (
    "title",
    "extracted_title",
    "url",
    "file",
    "media_type",
    "content_hash",
    "size_bytes",
    "language",
    "metadata",
    "status",
    "error",
    "progress_percent",
    "attempts",
    "retry_at",
    "chunk_count",
    "ingested_at",
)
_COPIED_TEXT = ("content_hash", "recipe", "text", "pages", "sections")


def copy_document(document: Document, collection: Collection) -> Document:
    """The document of the same source in ``collection``, made the same as ``document`` in one transaction.

    It keeps its own id, and its passages keep theirs where both have them, so that citations of them stay valid. What
    is still being read is to be read there too. The collections reduce words alike.
    """
    with transaction.atomic():
        target = Document.objects.select_for_update().filter(collection=collection, source=document.source).first()
        target = target or Document(collection=collection, source=document.source)
        previous = target.file.name if target.pk else ""
        for name in _COPIED:
            setattr(target, name, getattr(document, name))
        target.claim, target.heartbeat_at = None, None
        if target.status == Document.Status.PROCESSING:
            target.status = Document.Status.PENDING
        is_new = target.pk is None
        target.save()
        dates = {"updated_at": document.updated_at, **({"created_at": document.created_at} if is_new else {})}
        Document.objects.filter(pk=target.pk).update(**dates)
        text = DocumentText.objects.filter(pk=document.pk).first()
        if text is None:
            DocumentText.objects.filter(pk=target.pk).delete()
            keep = False
        else:
            keep = DocumentText.objects.filter(pk=target.pk, recipe=text.recipe).exists()
            values = {name: getattr(text, name) for name in _COPIED_TEXT}
            DocumentText.objects.update_or_create(document=target, defaults=values)
        _copy_chunks(document, target, keep=keep)
        if previous and previous != target.file.name:
            forget_file(target.file.storage, previous)
    return target


def _copy_chunks(source: Document, target: Document, *, keep: bool) -> int:
    """Make the target's chunks those of ``source``, vectors of every embedder included; returns how many were kept.

    With ``keep``, a chunk that is the same in both, its questions too, stays with its id, and is moved to its new
    place. Their collections may differ, but not in how they reduce words. Must run inside a transaction.
    """
    statistics = lock_statistics(target.collection_id)
    kept = _same_chunks(source, target) if keep else {}
    delete_chunks(statistics, list(target.chunks.exclude(pk__in=kept).values_list("pk", flat=True)))
    theirs = CollectionStatistics.objects.filter(pk=source.collection_id).first()
    if theirs is not None and not statistics.chunks:
        statistics.reference_length, statistics.weighting = theirs.reference_length, theirs.weighting
    parameters: dict[str, Any] = {
        "source": source.pk,
        "target": target.pk,
        "collection": target.collection_id,
        "kept": list(kept),
        "as_in_source": list(kept.values()),
        "boosts": FIELD_BOOSTS,
        "k1": settings.BM25_K1,
        "b": settings.BM25_B,
        "reference_length": statistics.reference_length,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE retrieval_chunk AS own
            SET ordinal = other.ordinal, start = other.start, "end" = other."end", page = other.page
            FROM unnest(%(kept)s::bigint[], %(as_in_source)s::bigint[]) AS pair(own_id, other_id)
            JOIN retrieval_chunk AS other ON other.id = pair.other_id
            WHERE own.id = pair.own_id
            """,
            parameters,
        )
        cursor.execute(
            """
            INSERT INTO retrieval_chunk (document_id, collection_id, ordinal, start, "end", page, heading_path, content,
                content_hash, token_count, canonical_questions, questions_edited, search_vector, bm25, length)
            SELECT %(target)s, %(collection)s, ordinal, start, "end", page, heading_path, content,
                content_hash, token_count, canonical_questions, questions_edited, search_vector,
                retrieval_bm25_weights(search_vector, %(boosts)s, %(k1)s, %(b)s, %(reference_length)s), length
            FROM retrieval_chunk
            WHERE document_id = %(source)s AND id <> ALL(%(as_in_source)s::bigint[])
            ORDER BY ordinal
            RETURNING id, length
            """,
            parameters,
        )
        added = cursor.fetchall()
        cursor.execute(
            """
            INSERT INTO retrieval_chunkembedding (
                chunk_id, document_id, collection_id, embedder_id, vector, token_signs)
            SELECT own.id, %(target)s, %(collection)s, embedder_id, vector, token_signs
            FROM retrieval_chunk AS own
            JOIN retrieval_chunk AS other ON other.document_id = %(source)s AND other.ordinal = own.ordinal
            JOIN retrieval_chunkembedding AS encoded ON encoded.chunk_id = other.id
            WHERE own.id = ANY(%(added)s::bigint[])
            ORDER BY own.id
            """,
            parameters | {"added": [pk for pk, _ in added]},
        )
    statistics.chunks += len(added)
    statistics.total_length += sum(length for _, length in added)
    count_lexemes([pk for pk, _ in added], sign=1)
    statistics.version += 1
    statistics.save()
    return len(kept)


def _same_chunks(source: Document, target: Document) -> dict[int, int]:
    """The target's chunks that the source has too, by id, with the id of the same one there, each used once."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH numbered AS (
                SELECT id, document_id, content_hash, canonical_questions, questions_edited,
                    row_number() OVER (
                        PARTITION BY document_id, content_hash, canonical_questions, questions_edited ORDER BY ordinal
                    ) AS nth
                FROM retrieval_chunk WHERE document_id IN (%(source)s, %(target)s)
            )
            SELECT own.id, other.id
            FROM numbered AS own
            JOIN numbered AS other USING (content_hash, canonical_questions, questions_edited, nth)
            WHERE own.document_id = %(target)s AND other.document_id = %(source)s
            """,
            {"source": source.pk, "target": target.pk},
        )
        return dict(cursor.fetchall())
