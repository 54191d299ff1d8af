"""Answers that say there is none: the nearest passages, and what may have been meant."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from django.db import DatabaseError
from django.utils.translation import gettext as _

from chat.answering.evidence import NEAR, Evidence, nearest_unit
from chat.answering.places import put_in_place
from chat.types import Choice, Completed, ContextSource, NearPlace, Usage
from retrieval.search.spelling import suggest
from retrieval.search.vocabulary import CollectionVocabulary
from retrieval.types import SearchFilters

logger = logging.getLogger(__name__)

MOST_PLACES = 3


def refuse(
    generator: str,
    question: str,
    sources: Sequence[ContextSource],
    evidence: Evidence,
    filters: SearchFilters,
    notices: Sequence[str] = (),
    usage: Usage | None = None,
) -> Completed:
    """The documents do not answer: the passages that come near, and the question as it may have been meant."""
    try:
        meant = suggest(question, CollectionVocabulary(filters.collections, filters.readers))
    except DatabaseError as error:
        logger.warning("What a question may have meant was not looked up: %s", error)
        meant = ()
    near = put_in_place(_near_places(question, sources, evidence))
    return Completed(
        text=_("The documents do not say this. Nearest passages:")
        if near
        else _("The documents do not answer this question."),
        citations=(),
        refused=True,
        generator=generator,
        notice=" ".join(notices),
        usage=usage,
        near=near,
        choices=tuple(Choice(other, other) for other in meant),
    )


def _near_places(question: str, sources: Sequence[ContextSource], evidence: Evidence) -> Iterator[NearPlace]:
    """The nearest place of each source that is near, the nearest first; at most MOST_PLACES."""
    near = [source for source in sources if evidence.closeness.get(source.marker, 0.0) >= NEAR]
    near.sort(key=lambda source: -evidence.closeness[source.marker])
    for source in near[:MOST_PLACES]:
        if (unit := nearest_unit(question, source)) is not None:
            yield NearPlace(source.block.passage_at(unit.start), unit.text, unit.start, unit.end)


def instruction_refusal() -> str:
    return _("This reads like an instruction to the site rather than a question. Ask about the documents.")
