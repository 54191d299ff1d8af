"""Copy documents with their passages and vectors to another collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from retrieval.documents.deletion import delete_unused_files
from retrieval.index.chunk_writer import (
    FIELD_BOOSTS,
    add_text_search_configurations,
    delete_chunks,
    lock_collection_statistics,
    update_document_frequencies,
)
from retrieval.models import Chunk, Collection, CollectionStatistics, Document, DocumentText
from retrieval.tables.stored_tables import copy_document_tables

_OWN = {"id", "collection", "source", "parent", "created_at", "lease", "heartbeat_at", "enqueued_at", "is_slow"}
_COPIED: list[str] = [
    str(field.column) for field in Document._meta.concrete_fields if field.name not in _OWN and not field.generated
]
_COPIED_TEXT = ("content_hash", "recipe", "text", "pages", "sections", "recognised", "instructions")
_PAIRS = "unnest(%(others)s::bigint[], %(own)s::bigint[]) AS pair(other, own)"


def copy_documents(documents: Sequence[Document], collection: Collection) -> None:
    """Copy ``documents`` into ``collection``, in one transaction.

    A copy replaces the document of ``collection`` with the same ``source``. All ``documents`` must be in one other
    collection, and both collections must have the same text-search configuration.
    """
    if not documents:
        return
    with transaction.atomic():
        sources = [document.source for document in documents]
        held = Document.objects.filter(collection=collection, source__in=sources).select_for_update().order_by("pk")
        previous_files = list(held.values_list("file", flat=True))
        copy_ids = _copy_rows([document.pk for document in documents], collection)
        _copy_chunks(copy_ids, collection)
        _copy_document_texts(copy_ids)
        copy_document_tables(copy_ids)
        delete_unused_files(previous_files)


def _execute_for_document_pairs(statement: str, copy_ids: Mapping[int, int], **parameters: Any) -> list[Any]:
    given = {"others": list(copy_ids), "own": list(copy_ids.values()), **parameters}
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return cursor.fetchall() if cursor.description else []


def _copy_rows(ids: Sequence[int], collection: Collection) -> dict[int, int]:
    """Copy the rows of documents and of their parents. Return a mapping of each of ``ids`` to the id of its copy."""
    taken = [
        "CASE status WHEN 'processing' THEN 'pending' ELSE status END" if name == "status" else name for name in _COPIED
    ]
    renewed = [f"{name} = excluded.{name}" for name in _COPIED]
    rows = _execute_for_document_pairs(
        f"""
        WITH copied AS (
            INSERT INTO retrieval_document (collection_id, source, created_at, is_slow, {", ".join(_COPIED)})
            SELECT %(collection)s, source, created_at, false, {", ".join(taken)}
            FROM retrieval_document WHERE id = ANY(%(ids)s)
            ORDER BY id
            ON CONFLICT (collection_id, source)
            DO UPDATE SET {", ".join(renewed)}, lease = NULL, heartbeat_at = NULL, enqueued_at = NULL
            RETURNING id, source
        )
        SELECT other.id, copied.id
        FROM copied JOIN retrieval_document AS other ON other.source = copied.source AND other.id = ANY(%(ids)s)
        """,  # only names of columns are inserted
        {},
        collection=collection.pk,
        ids=list(ids),
    )
    copy_ids = dict(rows)
    _execute_for_document_pairs(
        f"""
        UPDATE retrieval_document AS document
        SET parent_id = (
            SELECT held.id FROM retrieval_document AS parent
            JOIN retrieval_document AS held USING (source)
            WHERE parent.id = other.parent_id AND held.collection_id = document.collection_id
        )
        FROM {_PAIRS} JOIN retrieval_document AS other ON other.id = pair.other
        WHERE document.id = pair.own AND (other.parent_id IS NOT NULL OR document.parent_id IS NOT NULL)
        """,
        copy_ids,
    )
    return copy_ids


def _copy_document_texts(copy_ids: Mapping[int, int]) -> None:
    DocumentText.objects.filter(pk__in=copy_ids.values()).delete()
    columns = ", ".join(_COPIED_TEXT)
    _execute_for_document_pairs(
        f"""
        INSERT INTO retrieval_documenttext (document_id, {columns})
        SELECT pair.own, {columns} FROM {_PAIRS} JOIN retrieval_documenttext ON document_id = pair.other
        ORDER BY pair.own
        """,
        copy_ids,
    )


def _copy_chunks(copy_ids: Mapping[int, int], collection: Collection) -> None:
    """Copy passages and their vectors from documents to the copies of these documents in ``collection``.

    ``copy_ids`` maps the documents' ids to the ids of the copies. Call this before
    :func:`_copy_document_texts`, as the old texts' recipes are compared.
    """
    statistics = lock_collection_statistics(collection.pk)
    rows = _execute_for_document_pairs(
        f"""
        WITH numbered AS (
            SELECT id, document_id, chunk.content_hash, canonical_questions, questions_edited, recipe,
                row_number() OVER (
                    PARTITION BY document_id, chunk.content_hash, canonical_questions, questions_edited ORDER BY ordinal
                ) AS nth
            FROM retrieval_chunk AS chunk JOIN retrieval_documenttext USING (document_id)
            WHERE document_id = ANY(%(others)s::bigint[] || %(own)s::bigint[])
        )
        SELECT own.id, other.id
        FROM {_PAIRS}
        JOIN numbered AS own ON own.document_id = pair.own
        JOIN numbered AS other ON other.document_id = pair.other
            AND (other.recipe, other.content_hash, other.canonical_questions, other.questions_edited, other.nth)
                = (own.recipe, own.content_hash, own.canonical_questions, own.questions_edited, own.nth)
        """,
        copy_ids,
    )
    kept: dict[int, int] = dict(rows)
    own_chunks = Chunk.objects.filter(document__in=copy_ids.values())
    delete_chunks(statistics, list(own_chunks.exclude(pk__in=kept).values_list("pk", flat=True)))
    _execute_for_document_pairs(
        """
        WITH other AS MATERIALIZED (
            SELECT own_id, ordinal, start, "end", page, blocks
            FROM unnest(%(kept)s::bigint[], %(kept_others)s::bigint[]) AS pair(own_id, other_id)
            JOIN retrieval_chunk ON id = other_id
        )
        UPDATE retrieval_chunk AS own
        SET ordinal = other.ordinal, start = other.start, "end" = other."end", page = other.page, blocks = other.blocks
        FROM other
        WHERE own.id = other.own_id
        """,
        {},
        kept=list(kept),
        kept_others=list(kept.values()),
    )
    added = _insert_copied_passages(copy_ids, kept, statistics)
    ids = [pk for pk, _ in added]
    _execute_for_document_pairs(
        f"""
        WITH own AS MATERIALIZED (
            SELECT pair.other, id, document_id, ordinal FROM {_PAIRS} JOIN retrieval_chunk ON document_id = pair.own
            WHERE id = ANY(%(added)s::bigint[])
        )
        INSERT INTO retrieval_chunkembedding (chunk_id, document_id, collection_id, embedder_id, vector)
        SELECT own.id, own.document_id, %(collection)s, encoded.embedder_id, encoded.vector
        FROM own
        JOIN retrieval_chunk AS other ON other.document_id = own.other AND other.ordinal = own.ordinal
        JOIN retrieval_chunkembedding AS encoded
            ON encoded.chunk_id = other.id AND encoded.document_id = other.document_id
        ORDER BY own.id
        """,
        copy_ids,
        collection=collection.pk,
        added=ids,
    )
    statistics.chunks += len(added)
    statistics.total_length += sum(length for _, length in added)
    update_document_frequencies(ids, sign=1)
    statistics.version += 1
    statistics.save()


def _insert_copied_passages(
    copy_ids: Mapping[int, int], kept: Mapping[int, int], statistics: CollectionStatistics
) -> list[tuple[int, float]]:
    """Copy the passages that are not in ``kept``. Return the id and length of each copy."""
    theirs = CollectionStatistics.objects.filter(collection__documents__in=copy_ids).first()
    if not statistics.chunks and theirs is not None:
        statistics.reference_length, statistics.weighting = theirs.reference_length, theirs.weighting
    if theirs is not None:
        add_text_search_configurations(statistics, theirs.configurations.split())
    copied = """ordinal, start, "end", page, heading_path, content, content_hash, token_count, canonical_questions,
        questions_edited, blocks, configuration, search_vector, length"""
    return _execute_for_document_pairs(
        f"""
        INSERT INTO retrieval_chunk (document_id, collection_id, {copied}, bm25)
        SELECT pair.own, %(collection)s, {copied},
            retrieval_bm25_weights(search_vector, %(boosts)s, %(k1)s, %(b)s, %(reference_length)s)
        FROM {_PAIRS} JOIN retrieval_chunk AS chunk ON chunk.document_id = pair.other
        WHERE chunk.id <> ALL(%(kept_others)s::bigint[])
        ORDER BY pair.own, ordinal
        RETURNING id, length
        """,
        copy_ids,
        collection=statistics.collection_id,
        kept_others=list(kept.values()),
        boosts=FIELD_BOOSTS,
        k1=settings.BM25_K1,
        b=settings.BM25_B,
        reference_length=statistics.reference_length,
    )
