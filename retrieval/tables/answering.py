"""Questions that a table answers: recognised, linked to its columns and cells, and computed over all its rows."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from retrieval import conf
from retrieval.dense.calibration import current_calibration
from retrieval.exceptions import EmbeddingFailed
from retrieval.tables.candidates import find_candidates
from retrieval.tables.computing import compute
from retrieval.tables.interpretation.grammar import interpret
from retrieval.tables.types import TableResult
from retrieval.types import SearchFilters

if TYPE_CHECKING:
    from retrieval.search.context import Passage
    from retrieval.types import Vectors


logger = logging.getLogger(__name__)

# The embedder is asked about words of the first tables only.
_TABLES_BY_LIKENESS = 4


def name_likeness(words: str, names: Sequence[str]) -> list[float]:
    """How alike they are in meaning, by the embedder; not at all, when it does not answer or is not calibrated."""
    if not names:
        return []
    calibration = current_calibration()
    if calibration is None:
        return [0.0] * len(names)
    embedder = conf.embedder()
    try:
        (asked,) = _embed(embedder.name, (words,))
        cosines = _embed(embedder.name, tuple(names)) @ asked
        return [calibration.likeness(cosine) for cosine in cosines.tolist()]
    except EmbeddingFailed as error:
        logger.warning("Names of columns are compared by their words alone: %s", error)
        return [0.0] * len(names)


@functools.lru_cache(maxsize=1000)
def _embed(_embedder: str, names: tuple[str, ...]) -> Vectors:
    """The vectors of a table's names, or of a few words of a question, kept by the embedder that made them."""
    return conf.embedder().embed_documents(names)


def answer_from_tables(
    question: str, filters: SearchFilters, hits: Sequence[Passage], language: str = ""
) -> TableResult | None:
    """What the tables say; None when the question is not one that they answer, or it is not clear which does.

    ``hits`` are the passages that the search with these filters found, best first. ``language`` is that of the result's
    words; English and Dutch questions are read alike.
    """
    best: TableResult | None = None
    for place, table in enumerate(find_candidates(question, filters, hits)):
        interpretation = interpret(question, table, name_likeness if place < _TABLES_BY_LIKENESS else None)
        if interpretation is None:
            continue
        result = compute(interpretation, table, language)
        if result is None:
            continue
        result = replace(result, confidence=round(result.confidence - 0.005 * place, 3))
        if best is None or result.confidence > best.confidence:
            best = result
    return best
