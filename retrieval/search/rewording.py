"""The spelling of a question, put right by the words of what is searched."""

from __future__ import annotations

import logging
from dataclasses import replace

from django.db import DatabaseError

from retrieval.search.spelling import correct
from retrieval.search.vocabulary import CollectionVocabulary
from retrieval.types import Reformulation, SearchFilters

logger = logging.getLogger(__name__)


def spelt(reformulation: Reformulation, filters: SearchFilters) -> Reformulation:
    """The same with what is certainly misspelt put right, by the words of what these filters let through."""
    try:
        correction = correct(reformulation.query, CollectionVocabulary(filters.collections, filters.readers))
    except DatabaseError as error:
        # Whatever keeps the words from being read is told by keyword search, which reads the same tables.
        logger.warning("The spelling of a question was not checked: %s", error)
        return reformulation
    if correction is None:
        return reformulation
    spelling = ", ".join(f"{typed} → {meant}" for typed, meant in correction.replaced)
    reason = "; ".join(filter(None, (reformulation.reason, f"spelling: {spelling}")))
    return replace(reformulation, query=correction.question, changed=True, reason=reason, corrected=True)
