"""The evidence for an answer, weighed once, whoever asks for it: the pipeline, the extractive answerer, or both."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chat.grounding.evidence.answerability import Evidence, weigh
from chat.grounding.evidence.closeness import Closeness, SourceTokens, compare_encodings
from chat.grounding.evidence.units import QuotableUnit, text_to_encode
from chat.types import ContextSource
from retrieval import conf
from retrieval.dense.calibration.current import current_calibration
from retrieval.dense.calibration.scales import BUILT_IN, Calibration
from retrieval.dense.encoding import encode_excerpts, encode_query
from retrieval.dense.passage_tokens import load_tokens
from retrieval.dense.token_vectors import TokenEncoding, Tokens
from retrieval.exceptions import RetrievalError
from retrieval.observability.tracing import span
from retrieval.protocols import TokenEmbedder

if TYPE_CHECKING:
    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

# Enough for the answers that one process writes at the same time; an entry is about 100 kB.
REMEMBERED = 32


@span("evidence")
def gather_evidence(question: str, sources: Sequence[ContextSource]) -> Evidence:
    """What the sources hold on the question, remembered for a while.

    What the sources mean was computed when they were read: besides the question, only the few units are encoded on
    which the answer depends. An embedder without token vectors is asked for the vectors of the sources' sentences.
    While the embedder does not answer, words alone are weighed, with a warning in the log, and nothing is remembered.
    Whoever answers tells the reader (chat.answering), where the search before has not done so.
    """
    try:
        return _weigh_with_vectors(conf.embedder().name, current_calibration(), question, tuple(sources))
    except RetrievalError as error:
        logger.warning("Evidence is weighed by words alone, because the embedder does not answer: %s", error)
        return weigh(question, sources, lambda _question, _units: None)


def tokens_of_sources(sources: Sequence[ContextSource], calibration: Calibration = BUILT_IN) -> SourceTokens | None:
    """The tokens of the sources by their places; None for an embedder without token vectors.

    Raises: EmbeddingFailed.
    """
    embedder = conf.embedder()
    if not isinstance(embedder, TokenEmbedder):
        return None
    passages = [passage for source in sources for passage in source.block.passages]
    return SourceTokens(sources, load_tokens(passages, embedder), calibration)


@functools.lru_cache(maxsize=REMEMBERED)
def _weigh_with_vectors(
    _embedder: str, calibration: Calibration | None, question: str, sources: tuple[ContextSource, ...]
) -> Evidence:
    # Where nothing was fitted, its own cosines still tell which of the units is nearer.
    scales = calibration or BUILT_IN

    def compare(question: str, units: Sequence[QuotableUnit]) -> Closeness:
        known = tokens_of_sources(sources, scales)
        asked = encode_query(question)
        asked_of = conf.embedder()
        if known is not None and asked.tokens is not None and isinstance(asked_of, TokenEmbedder):
            return _refinable(known.compare(asked.tokens, units), asked.tokens, units, asked_of, scales)
        vectors = asked_of.embed_documents([text_to_encode(unit) for unit in units])
        return compare_encodings(_without_tokens(asked.vector), [_without_tokens(vector) for vector in vectors], scales)

    return weigh(question, sources, compare, calibration)


def _refinable(
    closeness: Closeness,
    question: TokenEncoding,
    units: Sequence[QuotableUnit],
    embedder: TokenEmbedder,
    scales: Calibration,
) -> Closeness:
    """The same closeness of the ``units``, that encodes those it is asked to refine."""

    def refine(chosen: Sequence[int]) -> None:
        numbers = list(chosen)
        encoded = encode_excerpts([text_to_encode(units[number]) for number in numbers], embedder)
        exact = compare_encodings(question, encoded, scales)
        closeness.vectors[numbers], closeness.similarities[numbers] = exact.vectors, exact.similarities
        closeness.nearest[:, numbers] = exact.nearest

    return replace(closeness, refine=refine)


def _without_tokens(vector: Vectors) -> TokenEncoding:
    return TokenEncoding(vector, Tokens((), ()), np.empty((0, len(vector)), np.float32))
