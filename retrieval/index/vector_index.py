"""The HNSW index of one embedder's vectors.

The column of vectors has no fixed width, so that two embedders can live in one table; the index is over the column cast
to the embedder's width, restricted to its rows. A query must repeat both, to the letter, to use it.
"""

from __future__ import annotations

import logging
import os

import psutil
from django.conf import settings as django_settings
from django.db import OperationalError, connection

from retrieval.models import ChunkEmbedding, Embedder

logger = logging.getLogger(__name__)

# Measured beside others in docs/performance.md: twice the building, and a third of the neighbours missed before.
M = 24
EF_CONSTRUCTION = 128
# Of an element of the graph, beside its vector: its neighbours' addresses and its own head.
_BYTES_OF_LINKS = 16 * 2 * M + 150
LARGEST_EF_SEARCH = 1000


def index_name(embedder: Embedder) -> str:
    return f"chunk_embedding_hnsw_{embedder.pk}"


def create_index(embedder: Embedder) -> None:
    """Make the embedder's index if it has none. Cheap before the first vector, minutes after the 100,000th."""
    with connection.cursor() as cursor:
        cursor.execute(_definition(embedder))


def build_index(embedder: Embedder) -> None:
    """As :func:`create_index`, with the memory and the processors of the server, while others read and write.

    To be called outside any transaction. What a build that was killed has left is removed first.
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
                # Parallel workers share memory that a container may not have (/dev/shm): one process alone needs none.
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
    """A graph that does not fit into memory is built four times as slowly from there on. Of a server elsewhere nothing
    is known: its own settings hold."""
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
