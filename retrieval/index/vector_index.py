"""The HNSW index of one embedder's vectors.

The column has no fixed width, so that one table stores two embedders. A query must repeat the index's cast and its
condition exactly.
"""

from __future__ import annotations

import logging
import os

import psutil
from django.conf import settings as django_settings
from django.db import OperationalError, connection

from retrieval.models import ChunkEmbedding, Embedder

logger = logging.getLogger(__name__)

# Building takes twice as long as with the former values, and a third as many neighbours are missed.
M = 24
EF_CONSTRUCTION = 128
# An element of the graph has its neighbours' addresses and a head beside its vector.
_BYTES_OF_LINKS = 16 * 2 * M + 150
LARGEST_EF_SEARCH = 1000


def index_name(embedder: Embedder) -> str:
    return f"chunk_embedding_hnsw_{embedder.pk}"


def create_index(embedder: Embedder) -> None:
    """Create the embedder's index if missing; minutes after the 100,000th vector."""
    with connection.cursor() as cursor:
        cursor.execute(_definition(embedder))


def build_index(embedder: Embedder) -> None:
    """Create the index with the server's memory and processors, while others read and write.

    Must run outside transactions.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [index_name(embedder)])
        found = cursor.fetchone()
        if found == (True,):
            return
        if found == (False,):
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(embedder)}")
        rows = ChunkEmbedding.objects.filter(embedder=embedder).count()
        settings = _building_settings(rows, embedder.dimension)
        try:
            for setting, value in settings:
                cursor.execute("SELECT set_config(%s, %s, false)", [setting, value])
            try:
                cursor.execute(_definition(embedder, "CONCURRENTLY"))
            except OperationalError as error:
                # Parallel workers need shared memory (/dev/shm), which a container may lack.
                logger.warning("The index is built without parallel workers: %s", error)
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index_name(embedder)}")
                cursor.execute("SET max_parallel_maintenance_workers = 0")
                cursor.execute(_definition(embedder, "CONCURRENTLY"))
        finally:
            for setting, _ in settings:
                cursor.execute(f"RESET {setting}")


def _definition(embedder: Embedder, how: str = "") -> str:
    return (
        f"CREATE INDEX {how} IF NOT EXISTS {index_name(embedder)} ON {ChunkEmbedding._meta.db_table} "
        f"USING hnsw ((vector::halfvec({embedder.dimension})) halfvec_cosine_ops) "
        f"WITH (m = {M}, ef_construction = {EF_CONSTRUCTION}) WHERE embedder_id = {embedder.pk:d}"
    )


def _building_settings(rows: int, dimension: int) -> list[tuple[str, str]]:
    """Return settings for building: a graph that does not fit into memory is built four times as slowly."""
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
        cursor.execute(f"DROP INDEX IF EXISTS {index_name(embedder)}")


def indexed_distance(embedder: Embedder) -> str:
    """Return the cosine distance to a parameter as the index's SQL expression: 0 to 2."""
    return f"(vector::halfvec({embedder.dimension:d}) <=> %s::halfvec)"


def exact_distance() -> str:
    """Return the cosine distance in a form without an index."""
    return "(vector <=> %s::halfvec)"


def scan_settings(candidates: int) -> dict[str, str]:
    return {
        "hnsw.ef_search": str(min(LARGEST_EF_SEARCH, max(40, candidates))),
        "hnsw.iterative_scan": "strict_order",
        # The default would starve a filter that few rows of a large table pass.
        "hnsw.max_scan_tuples": "1000000",
        # The number of passing rows varies by a factor of a thousand.
        "plan_cache_mode": "force_custom_plan",
    }
