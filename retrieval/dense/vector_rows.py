"""Rows of vectors, written with COPY in PostgreSQL's binary form: numbers as text cost twenty times as much."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from django.db import connection

from retrieval.dense.encoding import PassageEncoding
from retrieval.models import Embedder

# Eleven bytes of signature, flags and the length of an extension; at the end a row of -1 columns.
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = struct.pack("!h", -1)
_IDS = struct.Struct("!hiqiqiqiq")
_NULL = struct.pack("!i", -1)


def copy_vectors(rows: Iterable[tuple[int, int, int, PassageEncoding]], embedder: Embedder) -> None:
    """Write the encoding of each (chunk, document, collection, encoding). Must run inside a transaction.

    Raises: IntegrityError for a chunk that has a vector of the embedder already.
    """
    with (
        connection.cursor() as cursor,
        cursor.copy(
            "COPY retrieval_chunkembedding (chunk_id, document_id, collection_id, embedder_id, vector, token_signs) "
            "FROM STDIN (FORMAT BINARY)"
        ) as copy,
    ):
        copy.write(_HEADER)
        for chunk_id, document_id, collection_id, encoding in rows:
            vector = encoding.vector.astype(">f2").tobytes()
            signs = encoding.token_signs
            copy.write(
                b"".join(
                    (
                        _IDS.pack(6, 8, chunk_id, 8, document_id, 8, collection_id, 8, embedder.pk),
                        struct.pack("!iHH", 4 + len(vector), len(encoding.vector), 0),
                        vector,
                        _NULL if signs is None else struct.pack("!i", len(signs)) + signs,
                    )
                )
            )
        copy.write(_TRAILER)
