"""The evidence for an answer, weighed once, whoever asks for it: the pipeline, the extractive answerer, or both."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from chat.grounding.answerability import Evidence, weigh
from chat.grounding.calibration import is_calibrated
from chat.grounding.closeness import Closeness, SourceTokens, compare_encodings
from chat.grounding.units import QuotableUnit, text_to_encode
from chat.types import Source
from retrieval import conf
from retrieval.dense.encoding import encode_query
from retrieval.dense.passage_tokens import load_tokens
from retrieval.dense.token_vectors import TokenEncoding, Tokens
from retrieval.exceptions import RetrievalError
from retrieval.protocols import TokenEmbedder
from retrieval.tracing import span

if TYPE_CHECKING:
    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

# Enough for the answers that one process writes at the same time; an entry is about 100 kB.
REMEMBERED = 32


@span("evidence")
def gather_evidence(question: str, sources: Sequence[Source]) -> Evidence:
    """What the sources hold on the question, remembered for a while.

    Only the question is encoded: what the sources mean was computed when they were read. An embedder without token
    vectors is asked for the vectors of the sources' sentences. While the embedder does not answer, words alone are
    weighed, with a warning in the log, and nothing is remembered. Whoever answers tells the reader (chat.answering),
    where the search before has not done so.
    """
    try:
        return _weigh_with_vectors(conf.embedder().name, question, tuple(sources))
    except RetrievalError as error:
        logger.warning("Evidence is weighed by words alone, because the embedder does not answer: %s", error)
        return weigh(question, sources, lambda _question, _units: None)


def tokens_of_sources(sources: Sequence[Source]) -> SourceTokens | None:
    """The tokens of the sources by their places; None for an embedder without token vectors.

    Raises: EmbeddingFailed.
    """
    embedder = conf.embedder()
    if not isinstance(embedder, TokenEmbedder):
        return None
    passages = [passage for source in sources for passage in source.block.passages]
    return SourceTokens(sources, load_tokens(passages, embedder))


@functools.lru_cache(maxsize=REMEMBERED)
def _weigh_with_vectors(embedder: str, question: str, sources: tuple[Source, ...]) -> Evidence:
    def compare(question: str, units: Sequence[QuotableUnit]) -> Closeness:
        known = tokens_of_sources(sources)
        asked = encode_query(question)
        if known is not None and asked.tokens is not None:
            return known.compare(asked.tokens, units)
        vectors = conf.embedder().embed_documents([text_to_encode(unit) for unit in units])
        return compare_encodings(_without_tokens(asked.vector), [_without_tokens(vector) for vector in vectors])

    return weigh(question, sources, compare, calibrated=is_calibrated(embedder))


def _without_tokens(vector: Vectors) -> TokenEncoding:
    return TokenEncoding(vector, Tokens((), ()), np.empty((0, len(vector)), np.float32))
