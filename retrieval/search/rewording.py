"""What is searched in place of a question: completed from the conversation, and its spelling put right."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from django.db import DatabaseError

from retrieval import conf
from retrieval.lexical.vocabulary import CollectionVocabulary
from retrieval.reformulation.spelling import correct
from retrieval.types import Reformulation, SearchFilters, Turn

logger = logging.getLogger(__name__)


def reworded(
    question: str, history: Sequence[Turn], filters: SearchFilters, *, corrects_spelling: bool = True
) -> Reformulation:
    """The question as it is searched with these filters; ``history`` is the earlier turns, oldest first."""
    reformulation = conf.reformulator().reformulate(question, history)
    if not corrects_spelling:
        return reformulation
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
