"""Vectors for judging what a passage says, or the announcement that there are none."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from retrieval import conf
from retrieval.exceptions import RetrievalError

logger = logging.getLogger(__name__)


def vectors_or_none(texts: Sequence[str]) -> npt.NDArray[np.float32] | None:
    """Unit vectors, shape (len(texts), dimension); None, and a warning in the log, when the embedder does not answer.

    Whoever answers tells the reader (chat.answering), where the search before has not done so.
    """
    try:
        return conf.embedder().embed_documents(texts)
    except RetrievalError as error:
        logger.warning("Evidence is weighed by words alone, because the embedder does not answer: %s", error)
        return None
