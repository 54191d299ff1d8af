"""The evidence for an answer, weighed once, whoever asks for it: the pipeline, the extractive answerer, or both."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence

import numpy as np

from chat.grounding.evidence.answerability import Evidence, weigh
from chat.grounding.evidence.closeness import Closeness
from chat.grounding.evidence.units import QuotableUnit, text_to_encode
from chat.types import ContextSource
from retrieval import conf
from retrieval.dense.calibration.current import current_calibration
from retrieval.dense.calibration.scales import BUILT_IN, Calibration, Compared
from retrieval.dense.encoding import encode_query
from retrieval.exceptions import RetrievalError
from retrieval.observability.tracing import span

logger = logging.getLogger(__name__)

# Enough for the answers that one process writes at the same time; an entry is about 100 kB.
REMEMBERED = 32


@span("evidence")
def gather_evidence(question: str, sources: Sequence[ContextSource]) -> Evidence:
    """What the sources hold on the question, remembered for a while.

    The embedder is asked for the vectors of the sources' sentences. While it does not answer, words alone are weighed,
    with a warning in the log, and nothing is remembered. Whoever answers tells the reader (chat.answering), where the
    search before has not done so.
    """
    try:
        return _weigh_with_vectors(conf.embedder().name, current_calibration(), question, tuple(sources))
    except RetrievalError as error:
        logger.warning("Evidence is weighed by words alone, because the embedder does not answer: %s", error)
        return weigh(question, sources, lambda _question, _units: None)


@functools.lru_cache(maxsize=REMEMBERED)
def _weigh_with_vectors(
    _embedder: str, calibration: Calibration | None, question: str, sources: tuple[ContextSource, ...]
) -> Evidence:
    # Where nothing was fitted, its own cosines still tell which of the units is nearer.
    scale = (calibration or BUILT_IN).scale(Compared.QUESTION_TEXT)

    def compare(question: str, units: Sequence[QuotableUnit]) -> Closeness:
        vectors = np.asarray(conf.embedder().embed_documents([text_to_encode(unit) for unit in units]))
        return Closeness(vectors, scale(vectors @ encode_query(question)))

    return weigh(question, sources, compare, calibration)
