"""The HNSW index of one embedder's vectors.

The column of vectors has no fixed width, so that two embedders can live in one table; the index is over the column cast
to the embedder's width, restricted to its rows. A query must repeat both, to the letter, to use it.
"""

from __future__ import annotations

from django.db import connection
from django.db.models import F
from django.db.models.expressions import Expression
from django.db.models.functions import Cast
from pgvector import HalfVector
from pgvector.django import CosineDistance, HalfVectorField

from retrieval.models import ChunkEmbedding, Embedder

M = 16
EF_CONSTRUCTION = 64


def index_name(embedder: Embedder) -> str:
    return f"chunk_embedding_hnsw_{embedder.pk}"


def create_index(embedder: Embedder) -> None:
    """Make the embedder's index if it has none. Cheap before the first vector, minutes after the 100,000th."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE INDEX IF NOT EXISTS {index_name(embedder)} ON {ChunkEmbedding._meta.db_table} "
            f"USING hnsw ((vector::halfvec({embedder.dimension})) halfvec_cosine_ops) "
            f"WITH (m = {M}, ef_construction = {EF_CONSTRUCTION}) WHERE embedder_id = {embedder.pk:d}"
        )


def drop_index(embedder: Embedder) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS {index_name(embedder)}")


def indexed_distance(embedder: Embedder, query: HalfVector) -> Expression:
    """Cosine distance, written as the index's expression: 0 for the same direction, 2 for the opposite."""
    width = HalfVectorField(dimensions=embedder.dimension)
    return CosineDistance(Cast(F("vector"), width), query)


def exact_distance(query: HalfVector) -> Expression:
    """The same distance in a form that no index answers: every row is compared."""
    return CosineDistance(F("vector"), query)
