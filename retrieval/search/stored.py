"""What the index holds of the candidates of a search, read for all of them by one statement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retrieval.infrastructure.statements import fetch
from retrieval.types import StoredChunk

NO_VECTOR = np.empty(0, np.float32)


def load_stored(chunk_ids: Sequence[int], embedder_id: int | None, *, terms: bool = True) -> dict[int, StoredChunk]:
    """What is stored of these chunks, by id; one that is gone is missing.

    Vectors are the embedder's, and empty where it has none of a chunk; without an embedder they are not read, nor are
    term weights without ``terms``. Raises: DatabaseError.
    """
    columns = ["sparsevec_send(chunk.bm25)" if terms else "NULL::bytea"]
    joined = ""
    if embedder_id is not None:
        columns.append("halfvec_send(vector)")
        joined = (
            "LEFT JOIN retrieval_chunkembedding AS encoded "
            "ON encoded.chunk_id = chunk.id AND encoded.document_id = chunk.document_id "
            f"AND encoded.embedder_id = {embedder_id:d} "
        )
    else:
        columns.append("NULL::bytea")
    rows = fetch(
        f"SELECT chunk.id, chunk.collection_id, {', '.join(columns)} FROM retrieval_chunk AS chunk {joined}"
        "WHERE chunk.id = ANY(%s::bigint[])",
        [list(chunk_ids)],
    )
    found = {
        pk: StoredChunk(
            # Two 16-bit words of header, then half-precision numbers, big-endian.
            vector=NO_VECTOR if sent is None else np.frombuffer(sent, ">f2", offset=4).astype(np.float32),
            collection_id=collection,
            term_weights=term_weights,
        )
        for pk, collection, term_weights, sent in rows
    }
    # In the order asked for: sums of single precision depend on it, and rows come in any order.
    return {pk: found[pk] for pk in chunk_ids if pk in found}
