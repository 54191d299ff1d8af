"""Writes whole collections at once: the documents, their texts and chunks, and the statistics, in one transaction.

The pipeline takes documents one by one, each a job of its own; a test collection of thousands of short texts takes
minutes that way and seconds this way. What search reads afterwards is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from retrieval.documents.ingestion import Progress
from retrieval.index.chunk_writer import FIELD_BOOSTS, NewChunk, copy_vectors, lock_statistics, reweigh, weighting
from retrieval.models import Chunk, Collection, Document, DocumentText, Embedder, Lexeme
from retrieval.text.terms import expand_identifiers

if TYPE_CHECKING:
    from retrieval.types import Vectors

BATCH = 500
# A `tsvector` holds at most 1 MB and a `sparsevec` 16,000 terms, and larger ones are refused: the rest of a longer text
# is not searched by its words.
ANALYSED_CHARACTERS = 30_000


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A document ready to be written. ``index_fingerprint`` is what its DocumentText keeps of how the chunks were made.

    ``chunks`` may be empty: the document is then there, and never found.
    """

    source: str
    title: str
    language: str
    text: str
    content_hash: str
    index_fingerprint: str
    chunks: tuple[NewChunk, ...]


def replace_documents(
    collection: Collection, documents: Sequence[NewDocument], embedder: Embedder, progress: Progress | None = None
) -> None:
    """Make ``documents`` the collection's only ones; whoever reads sees either the old ones or all of the new.

    A document with the source of an old one keeps its id; chunks do not. The term weights are exact: they hold the mean
    length of these chunks. ``progress`` is told how many chunks are written. Raises: ValueError for two documents of
    one source, or a chunk without a vector.
    """
    if len({document.source for document in documents}) != len(documents):
        raise ValueError("Two documents have the same source.")
    with transaction.atomic():
        # Documents before statistics, as everywhere, so that no two writers wait for each other.
        gone = Document.objects.filter(collection=collection)
        gone.exclude(source__in=[document.source for document in documents]).delete()
        saved = save_documents(collection, documents)
        chunks = [
            (document.pk, document.title, ordinal, chunk)
            for document, new in zip(saved, documents, strict=True)
            for ordinal, chunk in enumerate(new.chunks)
        ]
        statistics = lock_statistics(collection.pk)
        Chunk.objects.filter(collection=collection).only("pk").delete()
        Lexeme.objects.filter(collection=collection).delete()
        lengths = _total_length(collection, chunks)
        statistics.chunks = len(chunks)
        statistics.total_length = lengths
        statistics.reference_length = max(statistics.mean_length, 1.0)
        statistics.weighting = weighting()
        statistics.version += 1
        statistics.save()
        written = 0
        for batch in _batches(chunks):
            _insert(collection, batch, embedder, statistics.reference_length)
            written += len(batch)
            if progress is not None:
                progress(written, len(chunks))
        _count_lexemes(collection)
        reweigh(collection, largest_drift=0.0)


_Placed = tuple[int, str, int, NewChunk]
"""Document id, document title, ordinal, chunk."""

# MATERIALIZED, or PostgreSQL would analyse the text anew for each column made from the vector.
_FRESH = """
    WITH fresh AS MATERIALIZED (
        SELECT field.*,
               setweight(to_tsvector(%(configuration)s::regconfig, title_terms), 'A')
            || setweight(to_tsvector(%(configuration)s::regconfig, heading_terms), 'B')
            || setweight(to_tsvector(%(configuration)s::regconfig, question_terms), 'C')
            || setweight(to_tsvector(%(configuration)s::regconfig, content_terms), 'D') AS search_vector
        FROM unnest(%(documents)s::bigint[], %(ordinals)s::int[], %(titles)s::text[], %(headings)s::text[],
                    %(questions)s::text[], %(contents)s::text[], %(starts)s::int[], %(ends)s::int[], %(pages)s::int[],
                    %(hashes)s::text[], %(tokens)s::int[], %(texts)s::text[], %(paths)s::text[], %(asked)s::text[])
             AS field(document_id, ordinal, title_terms, heading_terms, question_terms, content_terms, start, "end",
                      page, content_hash, tokens, content, path, asked)
    )
"""


def save_documents(collection: Collection, documents: Sequence[NewDocument]) -> list[Document]:
    """The rows of the documents and of their texts, written; without their chunks."""
    now = timezone.now()
    saved = Document.objects.bulk_create(
        [
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
                updated_at=now,
            )
            for new in documents
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["collection", "source"],
        update_fields=[
            "title",
            "language",
            "content_hash",
            "size_bytes",
            "status",
            "chunk_count",
            "ingested_at",
            "updated_at",
        ],
    )
    DocumentText.objects.bulk_create(
        [
            DocumentText(document=document, content_hash=new.content_hash, recipe=new.index_fingerprint, text=new.text)
            for document, new in zip(saved, documents, strict=True)
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["document"],
        update_fields=["content_hash", "recipe", "text", "pages", "sections"],
    )
    return saved


def _batches(chunks: Sequence[_Placed]) -> Iterator[Sequence[_Placed]]:
    return (chunks[start : start + BATCH] for start in range(0, len(chunks), BATCH))


def _parameters(collection: Collection, chunks: Sequence[_Placed]) -> dict[str, Any]:
    return {
        "configuration": collection.text_search_configuration,
        "boosts": FIELD_BOOSTS,
        "documents": [document for document, _, _, _ in chunks],
        "ordinals": [ordinal for _, _, ordinal, _ in chunks],
        "titles": [expand_identifiers(title) for _, title, _, _ in chunks],
        "headings": [expand_identifiers("\n".join(new.heading_path)) for *_, new in chunks],
        "questions": [expand_identifiers("\n".join(new.questions)) for *_, new in chunks],
        "contents": [expand_identifiers(new.content[:ANALYSED_CHARACTERS])[:ANALYSED_CHARACTERS] for *_, new in chunks],
        "starts": [new.start for *_, new in chunks],
        "ends": [new.end for *_, new in chunks],
        "pages": [new.page for *_, new in chunks],
        "hashes": [new.content_hash for *_, new in chunks],
        "tokens": [new.token_count for *_, new in chunks],
        "texts": [new.content for *_, new in chunks],
        "paths": [json.dumps(new.heading_path) for *_, new in chunks],
        "asked": [json.dumps(new.questions) for *_, new in chunks],
    }


def _total_length(collection: Collection, chunks: Sequence[_Placed]) -> float:
    """Length of all chunks together, known before any weight is computed, so that none has to be computed twice."""
    total = 0.0
    with connection.cursor() as cursor:
        for batch in _batches(chunks):
            cursor.execute(
                f"{_FRESH} SELECT coalesce(sum(retrieval_bm25_length(search_vector, %(boosts)s)), 0) FROM fresh",
                _parameters(collection, batch),
            )
            total += cursor.fetchone()[0]
    return total


def _insert(collection: Collection, chunks: Sequence[_Placed], embedder: Embedder, reference_length: float) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            {_FRESH}
            INSERT INTO retrieval_chunk (document_id, collection_id, ordinal, start, "end", page, heading_path, content,
                content_hash, token_count, canonical_questions, search_vector, bm25, length)
            SELECT document_id, %(collection)s, ordinal, start, "end", page,
                ARRAY(SELECT jsonb_array_elements_text(path::jsonb)), content, content_hash, tokens,
                ARRAY(SELECT jsonb_array_elements_text(asked::jsonb)), search_vector,
                retrieval_bm25_weights(search_vector, %(boosts)s, %(k1)s, %(b)s, %(reference_length)s),
                retrieval_bm25_length(search_vector, %(boosts)s)
            FROM fresh
            ORDER BY document_id, ordinal
            RETURNING id, document_id, ordinal
            """,
            _parameters(collection, chunks)
            | {
                "collection": collection.pk,
                "k1": settings.BM25_K1,
                "b": settings.BM25_B,
                "reference_length": reference_length,
            },
        )
        ids = {(document, ordinal): pk for pk, document, ordinal in cursor.fetchall()}
    copy_vectors(
        (
            (ids[document, ordinal], document, collection.pk, _vector(new, document, ordinal))
            for document, _, ordinal, new in chunks
        ),
        embedder,
    )


def _vector(new: NewChunk, document: int, ordinal: int) -> Vectors:
    if new.vector is None:
        raise ValueError(f"New chunk {ordinal} of document {document} has no vector.")
    return new.vector


def _count_lexemes(collection: Collection) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO retrieval_lexeme (collection_id, lexeme, document_frequency)
            SELECT %s, word, ndoc
            FROM ts_stat(format('SELECT search_vector FROM retrieval_chunk WHERE collection_id = %%s', %s::bigint))
            ORDER BY word
            """,
            [collection.pk, collection.pk],
        )
