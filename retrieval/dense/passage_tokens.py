"""What the words of stored passages mean, by their places: the token signs that the index holds, and where the tokens
stand. No passage is encoded again when a question is asked.

The places are those of the tokens of the passage as it was embedded; reading it into tokens runs no model. Signs that
the index lacks, or that are of another title than the document has now, are computed, with a warning in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from django.db import DatabaseError

from retrieval.database.statements import fetch
from retrieval.dense.token_vectors import PassageTokens, packed
from retrieval.exceptions import EmbeddingFailed
from retrieval.ingest.chunking.chunker import embedding_text
from retrieval.observability.metrics import PASSAGES_ENCODED
from retrieval.resilience.recent import Recent

if TYPE_CHECKING:
    from retrieval.protocols import TokenEmbedder
    from retrieval.search.context import Passage

logger = logging.getLogger(__name__)

PASSAGES_KEPT = 2048
"""Of the passages read last; one takes about 8 kB. Embedders with one name give one text the same signs."""


def load_tokens(passages: Iterable[Passage], embedder: TokenEmbedder) -> dict[int, PassageTokens]:
    """The tokens of each passage, by its chunk's id.

    Raises: EmbeddingFailed when the embedder is needed and does not answer, or the database does not.
    """
    wanted = {passage.chunk_id: passage for passage in passages}
    text_of = {
        pk: embedding_text(passage.document_title, passage.heading_path, passage.content)
        for pk, passage in wanted.items()
    }
    found = {pk: known for pk, text in text_of.items() if (known := _passages.get((embedder.name, text))) is not None}
    missing = {pk: text for pk, text in text_of.items() if pk not in found}
    if missing:
        owns = [len(text) - len(wanted[pk].content) for pk, text in missing.items()]
        for (pk, text), tokens in zip(missing.items(), _read(missing, owns, embedder), strict=True):
            found[pk] = tokens
            _passages.put((embedder.name, text), tokens)
    return found


def _read(text_of: Mapping[int, str], owns: Sequence[int], embedder: TokenEmbedder) -> list[PassageTokens]:
    try:
        signs_of = _stored_signs(list(text_of), embedder.name)
    except DatabaseError as error:
        raise EmbeddingFailed(f"The token vectors could not be read: {error}") from error
    read = [
        place_tokens(text, own, embedder, signs_of.get(pk))
        for (pk, text), own in zip(text_of.items(), owns, strict=True)
    ]
    unknown = [number for number, tokens in enumerate(read) if len(tokens.signs) != len(tokens.starts)]
    if unknown:
        PASSAGES_ENCODED.inc(len(unknown))
        logger.warning(
            "The index has no token vectors of %d passages as they are now; they are computed for this answer. Run "
            "`manage.py reembed`, or read their documents again.",
            len(unknown),
        )
        encodings = embedder.encode([read[number].text for number in unknown])
        for number, encoding in zip(unknown, encodings, strict=True):
            read[number] = place_tokens(read[number].text, owns[number], embedder, packed(encoding))
    return read


def _stored_signs(chunk_ids: Sequence[int], embedder: str) -> Mapping[int, bytes | None]:
    rows = fetch(
        "SELECT chunk_id, token_signs FROM retrieval_chunkembedding "
        "JOIN retrieval_embedder AS embedder ON embedder.id = embedder_id "
        "WHERE embedder.name = %s AND chunk_id = ANY(%s::bigint[])",
        [embedder, list(chunk_ids)],
    )
    return dict(rows)


def place_tokens(text: str, own: int, embedder: TokenEmbedder, signs: bytes | None) -> PassageTokens:
    tokens = embedder.tokenize(text)
    spans = [span for span, tells in zip(tokens.spans, tokens.telling(), strict=True) if tells]
    return PassageTokens(
        text,
        own,
        tuple(start for start, _ in spans),
        tuple(end for _, end in spans),
        np.frombuffer(signs or b"", np.uint8).reshape(-1, embedder.dimension // 8),
    )


_passages: Recent[tuple[str, str], PassageTokens] = Recent(PASSAGES_KEPT)
forget_passages = _passages.clear
