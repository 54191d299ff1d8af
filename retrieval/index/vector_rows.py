"""Rows of vectors, written with COPY in PostgreSQL's binary form: numbers as text cost twenty times as much."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.db import connection

from retrieval.models import Embedder

if TYPE_CHECKING:
    from retrieval.types import Vectors

# Eleven bytes of signature, flags and the length of an extension; at the end a row of -1 columns.
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = struct.pack("!h", -1)
_IDS = struct.Struct("!hiqiqiqiq")


def copy_vectors(rows: Iterable[tuple[int, int, int, Vectors]], embedder: Embedder) -> None:
    """Write the vector of each (chunk, document, collection, vector). Must run inside a transaction.

    Raises: IntegrityError for a chunk that has a vector of the embedder already.
    """
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "COPY retrieval_chunkembedding (chunk_id, document_id, collection_id, embedder_id, vector) "
            "FROM STDIN (FORMAT BINARY)"
        ) as copy,
    ):
        copy.write(_HEADER)
        for chunk_id, document_id, collection_id, vector in rows:
            halves = vector.astype(">f2").tobytes()
            copy.write(
                b"".join(
                    (
                        _IDS.pack(5, 8, chunk_id, 8, document_id, 8, collection_id, 8, embedder.pk),
                        struct.pack("!iHH", 4 + len(halves), len(vector), 0),
                        halves,
                    )
                )
            )
        copy.write(_TRAILER)
