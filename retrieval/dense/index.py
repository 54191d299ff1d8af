"""The HNSW index of one embedder's vectors.

The column of vectors has no fixed width, so that two embedders can live in one table; the index is over the column cast
to the embedder's width, restricted to its rows. A query must repeat both, to the letter, to use it.
"""

from __future__ import annotations

from django.db import connection

from retrieval.models import ChunkEmbedding, Embedder

M = 16
EF_CONSTRUCTION = 64
LARGEST_EF_SEARCH = 1000


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


def indexed_distance(embedder: Embedder) -> str:
    """Cosine distance to a parameter in SQL, written as the index's expression: 0 for the same direction, 2 for the
    opposite."""
    return f"(vector::halfvec({embedder.dimension:d}) <=> %s::halfvec)"


def exact_distance() -> str:
    """The same distance in a form that no index answers: every row is compared."""
    return "(vector <=> %s::halfvec)"


def scan_settings(candidates: int) -> dict[str, str]:
    """Settings of the database for a scan of the index that looks at so many candidates."""
    return {
        "hnsw.ef_search": str(min(LARGEST_EF_SEARCH, max(40, candidates))),
        "hnsw.iterative_scan": "strict_order",
        # The default of scanned tuples would starve a filter that few of a large table's rows pass.
        "hnsw.max_scan_tuples": "1000000",
        # The number of rows that pass differs by a thousand times: each scan is planned for its own filters.
        "plan_cache_mode": "force_custom_plan",
    }
