"""Rows of chunks: analysed, weighed and stored by one statement, their vectors by COPY."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection

from retrieval.dense.vector_rows import copy_vectors
from retrieval.lexical.fields import FIELD_BOOSTS
from retrieval.models import Document, Embedder
from retrieval.text.blocks.rows import Row
from retrieval.text.terms import expand_identifiers

if TYPE_CHECKING:
    from retrieval.types import Vectors


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk ready to be written; ``vector`` is the active embedder's, None where it is made later."""

    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    content: str
    content_hash: str
    token_count: int
    questions: tuple[str, ...]
    vector: Vectors | None
    questions_edited: bool = False
    blocks: Sequence[Row] = ()


VECTORS = """
    SELECT field.*,
           setweight(to_tsvector(%(configuration)s::regconfig, %(title)s), 'A')
        || setweight(to_tsvector(%(configuration)s::regconfig, headings_terms), 'B')
        || setweight(to_tsvector(%(configuration)s::regconfig, questions_terms), 'C')
        || setweight(to_tsvector(%(configuration)s::regconfig, content_terms), 'D') AS search_vector
    FROM unnest(%(headings)s::text[], %(questions)s::text[], %(contents)s::text[], %(ordinals)s::int[])
         AS field(headings_terms, questions_terms, content_terms, ordinal)
"""


def _text_fields(added: Sequence[tuple[int, NewChunk]]) -> list[tuple[int, Sequence[str], Sequence[str], str]]:
    return [(ordinal, new.heading_path, new.questions, new.content) for ordinal, new in added]


def analysed_fields(
    document: Document, rows: Sequence[tuple[int, Sequence[str], Sequence[str], str]]
) -> dict[str, Any]:
    """The parameters of ``VECTORS`` and of the weights, of (ordinal, headings, questions, content) rows."""
    ordinals, headings, questions, contents = zip(*rows, strict=True)
    return {
        "configuration": document.collection.text_search_configuration,
        "title": expand_identifiers(document.title),
        "headings": [expand_identifiers("\n".join(path)) for path in headings],
        "questions": [expand_identifiers("\n".join(asked)) for asked in questions],
        "contents": [expand_identifiers(content) for content in contents],
        "ordinals": list(ordinals),
        "boosts": FIELD_BOOSTS,
        "k1": settings.BM25_K1,
        "b": settings.BM25_B,
    }


def mean_length(document: Document, added: Sequence[tuple[int, NewChunk]]) -> float:
    if not added:
        return 0.0
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT avg(retrieval_bm25_length(search_vector, %(boosts)s)) FROM ({VECTORS}) AS fresh",
            analysed_fields(document, _text_fields(added)),
        )
        return max(cursor.fetchone()[0] or 0.0, 1.0)


def insert_chunks(
    document: Document, added: Sequence[tuple[int, NewChunk]], embedder: Embedder, reference_length: float
) -> list[tuple[int, float]]:
    """Write new chunks and the vectors of those that have one; returns their ids and lengths."""
    if not added:
        return []
    parameters = analysed_fields(document, _text_fields(added)) | {
        "document": document.pk,
        "collection": document.collection_id,
        "reference_length": reference_length,
        "starts": [new.start for _, new in added],
        "ends": [new.end for _, new in added],
        "pages": [new.page for _, new in added],
        "hashes": [new.content_hash for _, new in added],
        "tokens": [new.token_count for _, new in added],
        "texts": [new.content for _, new in added],
        "paths": [json.dumps(new.heading_path) for _, new in added],
        "asked": [json.dumps(new.questions) for _, new in added],
        "edited": [new.questions_edited for _, new in added],
        "blocks": [json.dumps(new.blocks) for _, new in added],
    }
    with connection.cursor() as cursor:
        cursor.execute(
            # Materialized, or the planner would analyse the text once for every use of the vector.
            f"""
            WITH fresh AS MATERIALIZED ({VECTORS})
            INSERT INTO retrieval_chunk (document_id, collection_id, ordinal, start, "end", page, heading_path, content,
                content_hash, token_count, canonical_questions, questions_edited, blocks, search_vector, bm25, length)
            SELECT %(document)s, %(collection)s, fresh.ordinal, start, "end", page,
                ARRAY(SELECT jsonb_array_elements_text(path::jsonb)), content, content_hash, tokens,
                ARRAY(SELECT jsonb_array_elements_text(asked::jsonb)), edited, blocks::jsonb, search_vector,
                retrieval_bm25_weights(search_vector, %(boosts)s, %(k1)s, %(b)s, %(reference_length)s),
                retrieval_bm25_length(search_vector, %(boosts)s)
            FROM fresh
            JOIN unnest(%(ordinals)s::int[], %(starts)s::int[], %(ends)s::int[], %(pages)s::int[], %(hashes)s::text[],
                        %(tokens)s::int[], %(texts)s::text[], %(paths)s::text[], %(asked)s::text[], %(edited)s::bool[],
                        %(blocks)s::text[])
                 AS place(ordinal, start, "end", page, content_hash, tokens, content, path, asked, edited, blocks)
                 USING (ordinal)
            ORDER BY ordinal
            RETURNING id, ordinal, length
            """,
            parameters,
        )
        rows = cursor.fetchall()
    by_ordinal = dict(added)
    vectors = ((pk, by_ordinal[ordinal].vector) for pk, ordinal, _ in rows)
    copy_vectors(
        ((pk, document.pk, document.collection_id, vector) for pk, vector in vectors if vector is not None),
        embedder,
    )
    return [(pk, length) for pk, _, length in rows]
