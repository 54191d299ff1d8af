"""Documents of one collection, made the same in another: with their files, their passages, questions and vectors.

Nothing is read or embedded again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from retrieval.ingest.submission import forget_file
from retrieval.ingest.writing import count_lexemes, delete_chunks, lock_statistics
from retrieval.lexical.fields import FIELD_BOOSTS
from retrieval.models import Chunk, Collection, CollectionStatistics, Document, DocumentText
from retrieval.tables.writing import copy_tables

# A copy stays where it is, and is ingested, if it has to be, by a job of its own.
_OWN = {"id", "collection", "source", "parent", "created_at", "lease", "heartbeat_at", "enqueued_at", "is_slow"}
_COPIED = [field.name for field in Document._meta.concrete_fields if field.name not in _OWN]
_COPIED_TEXT = ("content_hash", "recipe", "text", "pages", "sections", "instructions")


def copy_documents(documents: Sequence[Document], collection: Collection) -> None:
    """Make the documents of the same sources in ``collection`` the same as ``documents``, in one transaction.

    They keep their own ids, and their passages keep theirs where both have them, so that citations of them stay valid.
    What is still being read is to be read there too. The documents are of one collection, which reduces words as this
    one does.
    """
    with transaction.atomic():
        sources = [document.source for document in documents]
        held = Document.objects.filter(collection=collection, source__in=sources).select_for_update().order_by("pk")
        known = {document.source: document for document in held}
        previous = {source: str(document.file.name) for source, document in known.items()}
        targets = [known.get(source) or Document(collection=collection, source=source) for source in sources]
        new = [target for target in targets if target.pk is None]
        Document.objects.bulk_create(new)
        for document, target in zip(documents, targets, strict=True):
            for name in _COPIED:
                setattr(target, name, getattr(document, name))
            target.lease, target.heartbeat_at, target.enqueued_at = None, None, None
            if target.status == Document.Status.PROCESSING:
                target.status = Document.Status.PENDING
            if target.source not in known:
                target.created_at = document.created_at
        Document.objects.bulk_update(targets, [*_COPIED, "lease", "heartbeat_at", "enqueued_at", "created_at"])
        counterparts = {document.pk: target.pk for document, target in zip(documents, targets, strict=True)}
        _copy_parents(documents, targets, collection)
        of_same_recipe = _copy_texts(counterparts)
        _copy_chunks(counterparts, of_same_recipe, collection)
        copy_tables(counterparts)
        for document in known.values():
            forget_file(document.file.storage, previous[document.source])


def _copy_parents(documents: Sequence[Document], targets: Sequence[Document], collection: Collection) -> None:
    """Give each document the parent that its counterpart has, in its own collection."""
    sources = dict(
        Document.objects.filter(members__in=[document.pk for document in documents]).values_list("pk", "source")
    )
    held = Document.objects.filter(collection=collection, source__in=sources.values())
    own = dict(held.values_list("source", "pk"))
    for document, target in zip(documents, targets, strict=True):
        target.parent_id = own.get(sources.get(document.parent_id or 0, ""))
    Document.objects.bulk_update(targets, ["parent"])


def _copy_texts(counterparts: Mapping[int, int]) -> set[int]:
    """Give each document the text of its counterpart; returns the sources of those made by the same recipe before."""
    texts = {text.pk: text for text in DocumentText.objects.filter(pk__in=counterparts)}
    recipes = dict(DocumentText.objects.filter(pk__in=counterparts.values()).values_list("pk", "recipe"))
    DocumentText.objects.filter(pk__in=[own for other, own in counterparts.items() if other not in texts]).delete()
    DocumentText.objects.bulk_create(
        [
            DocumentText(document_id=counterparts[pk], **{name: getattr(text, name) for name in _COPIED_TEXT})
            for pk, text in texts.items()
        ],
        update_conflicts=True,
        unique_fields=["document"],
        update_fields=_COPIED_TEXT,
    )
    return {pk for pk, text in texts.items() if recipes.get(counterparts[pk]) == text.recipe}


def _copy_chunks(counterparts: Mapping[int, int], of_same_recipe: set[int], collection: Collection) -> None:
    """Give each document the chunks of its counterpart, with vectors of every embedder.

    Of documents made by the same recipe, a chunk that is the same in both, its questions too, stays with its id, and is
    moved to its new place.
    """
    statistics = lock_statistics(collection.pk)
    kept = _same_chunks({other: own for other, own in counterparts.items() if other in of_same_recipe})
    own_chunks = Chunk.objects.filter(document__in=counterparts.values())
    delete_chunks(statistics, list(own_chunks.exclude(pk__in=kept).values_list("pk", flat=True)))
    if not statistics.chunks:
        theirs = CollectionStatistics.objects.filter(collection__documents__in=counterparts).first()
        if theirs is not None:
            statistics.reference_length, statistics.weighting = theirs.reference_length, theirs.weighting
    parameters: dict[str, Any] = {
        "others": list(counterparts),
        "own": list(counterparts.values()),
        "collection": collection.pk,
        "kept": list(kept),
        "kept_others": list(kept.values()),
        "boosts": FIELD_BOOSTS,
        "k1": settings.BM25_K1,
        "b": settings.BM25_B,
        "reference_length": statistics.reference_length,
    }
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE retrieval_chunk AS own
            SET ordinal = other.ordinal, start = other.start, "end" = other."end", page = other.page,
                blocks = other.blocks
            FROM unnest(%(kept)s::bigint[], %(kept_others)s::bigint[]) AS pair(own_id, other_id)
            JOIN retrieval_chunk AS other ON other.id = pair.other_id
            WHERE own.id = pair.own_id
            """,
            parameters,
        )
        cursor.execute(
            """
            INSERT INTO retrieval_chunk (document_id, collection_id, ordinal, start, "end", page, heading_path, content,
                content_hash, token_count, canonical_questions, questions_edited, blocks, search_vector, bm25, length)
            SELECT pair.own, %(collection)s, ordinal, start, "end", page, heading_path, content,
                content_hash, token_count, canonical_questions, questions_edited, blocks, search_vector,
                retrieval_bm25_weights(search_vector, %(boosts)s, %(k1)s, %(b)s, %(reference_length)s), length
            FROM unnest(%(others)s::bigint[], %(own)s::bigint[]) AS pair(other, own)
            JOIN retrieval_chunk AS chunk ON chunk.document_id = pair.other
            WHERE chunk.id <> ALL(%(kept_others)s::bigint[])
            ORDER BY pair.own, ordinal
            RETURNING id, length
            """,
            parameters,
        )
        added = cursor.fetchall()
        cursor.execute(
            """
            INSERT INTO retrieval_chunkembedding
                (chunk_id, document_id, collection_id, embedder_id, vector, token_signs)
            SELECT own.id, pair.own, %(collection)s, encoded.embedder_id, encoded.vector, encoded.token_signs
            FROM unnest(%(others)s::bigint[], %(own)s::bigint[]) AS pair(other, own)
            JOIN retrieval_chunk AS own ON own.document_id = pair.own
            JOIN retrieval_chunk AS other ON other.document_id = pair.other AND other.ordinal = own.ordinal
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


def _same_chunks(counterparts: Mapping[int, int]) -> dict[int, int]:
    """The chunks that a document has as its counterpart has them, by id, with the id there, each used once."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH numbered AS (
                SELECT id, document_id, content_hash, canonical_questions, questions_edited,
                    row_number() OVER (
                        PARTITION BY document_id, content_hash, canonical_questions, questions_edited ORDER BY ordinal
                    ) AS nth
                FROM retrieval_chunk WHERE document_id = ANY(%(others)s::bigint[] || %(own)s::bigint[])
            )
            SELECT own.id, other.id
            FROM unnest(%(others)s::bigint[], %(own)s::bigint[]) AS pair(other, own)
            JOIN numbered AS own ON own.document_id = pair.own
            JOIN numbered AS other ON other.document_id = pair.other
                AND (other.content_hash, other.canonical_questions, other.questions_edited, other.nth)
                    = (own.content_hash, own.canonical_questions, own.questions_edited, own.nth)
            """,
            {"others": list(counterparts), "own": list(counterparts.values())},
        )
        return dict(cursor.fetchall())
