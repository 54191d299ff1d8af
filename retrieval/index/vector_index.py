"""Create and query the HNSW index of an embedder's vectors.

PostgreSQL uses the index only for a query with exactly the cast and the condition in the index's definition.
"""

from __future__ import annotations

import logging
import os

import psutil
from django.conf import settings as django_settings
from django.db import OperationalError, connection

from retrieval.models import ChunkEmbedding, Embedder

logger = logging.getLogger(__name__)

# Links per node of the HNSW index. 16 links would miss three times as many neighbours.
M = 24
EF_CONSTRUCTION = 128
# Bytes of a node in the index besides its vector.
_BYTES_OF_LINKS = 16 * 2 * M + 150
LARGEST_EF_SEARCH = 1000


def get_index_name(embedder: Embedder) -> str:
    return f"chunk_embedding_hnsw_{embedder.pk}"


def create_index(embedder: Embedder) -> None:
    """Create the embedder's index if it is missing. For 100,000 vectors, this takes minutes."""
    with connection.cursor() as cursor:
        cursor.execute(_build_index_definition(embedder))


def build_index(embedder: Embedder) -> None:
    """Create the index with much memory and parallel workers, while others read and write.

    Must run outside transactions.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [get_index_name(embedder)])
        found = cursor.fetchone()
        if found == (True,):
            return
        if found == (False,):
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {get_index_name(embedder)}")
        rows = ChunkEmbedding.objects.filter(embedder=embedder).count()
        settings = _build_index_settings(rows, embedder.dimension)
        try:
            for setting, value in settings:
                cursor.execute("SELECT set_config(%s, %s, false)", [setting, value])
            try:
                cursor.execute(_build_index_definition(embedder, "CONCURRENTLY"))
            except OperationalError as error:
                # Parallel workers need shared memory (/dev/shm), which a container may lack.
                logger.warning("The index is built without parallel workers: %s", error)
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {get_index_name(embedder)}")
                cursor.execute("SET max_parallel_maintenance_workers = 0")
                cursor.execute(_build_index_definition(embedder, "CONCURRENTLY"))
        finally:
            for setting, _ in settings:
                cursor.execute(f"RESET {setting}")


def _build_index_definition(embedder: Embedder, how: str = "") -> str:
    return (
        f"CREATE INDEX {how} IF NOT EXISTS {get_index_name(embedder)} ON {ChunkEmbedding._meta.db_table} "
        f"USING hnsw ((vector::halfvec({embedder.dimension})) halfvec_cosine_ops) "
        f"WITH (m = {M}, ef_construction = {EF_CONSTRUCTION}) WHERE embedder_id = {embedder.pk:d}"
    )


def _build_index_settings(rows: int, dimension: int) -> list[tuple[str, str]]:
    if django_settings.EMBEDDED_POSTGRES is None:
        return []
    needed_mib = rows * (2 * dimension + _BYTES_OF_LINKS) // 2**20 + 64
    memory_mib = min(needed_mib, psutil.virtual_memory().available // 2**20 // 3)
    workers = max(0, (os.cpu_count() or 1) - 1)
    return [
        ("maintenance_work_mem", f"{max(64, memory_mib)}MB"),
        ("max_parallel_maintenance_workers", str(workers)),
    ]


def drop_index(embedder: Embedder) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS {get_index_name(embedder)}")


def build_indexed_distance(embedder: Embedder) -> str:
    """Return an SQL expression that uses the index to compute the cosine distance (0 to 2) to a parameter."""
    return f"(vector::halfvec({embedder.dimension:d}) <=> %s::halfvec)"


def build_exact_distance() -> str:
    """Return SQL for the cosine distance (0 to 2) to a parameter. This expression does not use the index."""
    return "(vector <=> %s::halfvec)"


def build_scan_settings(candidates: int) -> dict[str, str]:
    return {
        "hnsw.ef_search": str(min(LARGEST_EF_SEARCH, max(40, candidates))),
        "hnsw.iterative_scan": "strict_order",
        # The default stops before enough rows pass a selective filter.
        "hnsw.max_scan_tuples": "1000000",
        # A cached plan would be wrong for filters that pass very few or very many rows.
        "plan_cache_mode": "force_custom_plan",
    }
