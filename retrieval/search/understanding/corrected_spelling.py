from __future__ import annotations

import logging
from dataclasses import replace

from django.db import DatabaseError

from retrieval.search.understanding.spelling import correct_question
from retrieval.search.understanding.vocabulary import CollectionVocabulary
from retrieval.types import (
    Reformulation,
    SearchFilters,
)

logger = logging.getLogger(__name__)


def correct_spelling(reformulation: Reformulation, filters: SearchFilters) -> Reformulation:
    """Correct misspelt words of the query if the meant word is certain."""
    try:
        correction = correct_question(reformulation.query, CollectionVocabulary(filters.collections, filters.readers))
    except DatabaseError as error:
        logger.warning("The spelling of a question was not checked: %s", error)
        return reformulation
    if correction is None:
        return reformulation
    spelling = ", ".join(f"{typed} → {meant}" for typed, meant in correction.replaced)
    reason = "; ".join(filter(None, (reformulation.reason, f"spelling: {spelling}")))
    return replace(reformulation, query=correction.question, changed=True, reason=reason, corrected=True)
