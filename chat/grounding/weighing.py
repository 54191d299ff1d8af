"""The evidence for an answer, weighed once, whoever asks for it: the pipeline, the extractive answerer, or both."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from chat.grounding.answerability import CALIBRATED_FOR, Evidence, weigh
from chat.types import Source
from retrieval import conf
from retrieval.exceptions import RetrievalError

if TYPE_CHECKING:
    from retrieval.protocols import Vectors

logger = logging.getLogger(__name__)

# Enough for the answers that one process writes at the same time; an entry is about 100 kB.
REMEMBERED = 32

_recent: OrderedDict[tuple[str, str, tuple[Source, ...]], Evidence] = OrderedDict()
_lock = threading.Lock()


def evidence_for(question: str, sources: Sequence[Source]) -> Evidence:
    """What the sources hold on the question, by the site's embedder, remembered for a while.

    What was weighed by words alone, because the embedder did not answer, is weighed anew the next time.
    """
    embedder = conf.embedder().name
    key = (embedder, question, tuple(sources))
    with _lock:
        known = _recent.get(key)
        if known is not None:
            _recent.move_to_end(key)
            return known
    evidence = weigh(question, sources, _vectors_or_none, calibrated=embedder.startswith(CALIBRATED_FOR))
    if evidence.has_vectors:
        with _lock:
            _recent[key] = evidence
            while len(_recent) > REMEMBERED:
                _recent.popitem(last=False)
    return evidence


def _vectors_or_none(texts: Sequence[str]) -> Vectors | None:
    """Unit vectors, shape (len(texts), dimension); None, and a warning in the log, when the embedder does not answer.

    Whoever answers tells the reader (chat.answering), where the search before has not done so.
    """
    try:
        return conf.embedder().embed_documents(texts)
    except RetrievalError as error:
        logger.warning("Evidence is weighed by words alone, because the embedder does not answer: %s", error)
        return None
