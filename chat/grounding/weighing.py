"""The evidence for an answer, weighed once, whoever asks for it: the pipeline, the extractive answerer, or both."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence

import numpy as np

from chat.grounding.answerability import CALIBRATED_FOR, Evidence, weigh
from chat.types import Source
from retrieval import conf
from retrieval.dense.token_vectors import TokenEncoding, Tokens
from retrieval.exceptions import RetrievalError
from retrieval.protocols import TokenEmbedder

logger = logging.getLogger(__name__)

# Enough for the answers that one process writes at the same time; an entry is about 100 kB.
REMEMBERED = 32


def gather_evidence(question: str, sources: Sequence[Source]) -> Evidence:
    """What the sources hold on the question, by the site's embedder, remembered for a while.

    While the embedder does not answer, words alone are weighed, with a warning in the log, and nothing is remembered.
    Whoever answers tells the reader (chat.answering), where the search before has not done so.
    """
    try:
        return _weigh_with_vectors(conf.embedder().name, question, tuple(sources))
    except RetrievalError as error:
        logger.warning("Evidence is weighed by words alone, because the embedder does not answer: %s", error)
        return weigh(question, sources, lambda _texts: None)


@functools.lru_cache(maxsize=REMEMBERED)
def _weigh_with_vectors(embedder: str, question: str, sources: tuple[Source, ...]) -> Evidence:
    return weigh(question, sources, _encode, calibrated=embedder.startswith(CALIBRATED_FOR))


def _encode(texts: Sequence[str]) -> list[TokenEncoding]:
    active = conf.embedder()
    if isinstance(active, TokenEmbedder):
        return active.encode(texts)
    vectors = active.embed_documents(texts)
    return [TokenEncoding(vector, Tokens((), ()), np.empty((0, len(vector)), np.float32)) for vector in vectors]
