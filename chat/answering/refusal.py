"""Add the closest passages and corrected spellings to the reply if the documents do not answer a question."""

from __future__ import annotations

import logging

from django.db import DatabaseError
from django.utils.translation import gettext as _

from chat.answering.evidence import Evidence
from chat.answering.excerpts import Excerpt
from chat.answering.quotation_places import locate_quotations
from chat.answering.results import MOST_ALTERNATIVES, build_alternative_passage, build_excerpts
from chat.answering.units import QuotableUnit
from chat.types import (
    AnswerDraft,
    AnswerState,
    CompletedEvent,
    QuestionChoice,
)
from core.read_once import cache_reads_in_block
from retrieval.search.understanding.spelling import suggest_questions
from retrieval.search.understanding.vocabulary import CollectionVocabulary
from retrieval.text.language import identify_language
from retrieval.types import SearchFilters

logger = logging.getLogger(__name__)


@cache_reads_in_block()
def build_refusal(draft: AnswerDraft, evidence: Evidence, filters: SearchFilters) -> CompletedEvent:
    try:
        language = identify_language(draft.question)
        meant = suggest_questions(draft.question, CollectionVocabulary(filters.collections, filters.readers, language))
    except DatabaseError as error:
        logger.warning("What a question may have meant was not looked up: %s", error)
        meant = ()
    if draft.table is not None and not (evidence.is_near_question or draft.table.conditions or draft.table.sorted_by):
        # If the sources are not near the question, the draft's table is shown only if the question filters or sorts
        # its rows.
        draft.table = None
    if draft.table is not None:
        closest = _("The documents may not answer this. This table comes closest:")
        text = f"{closest} {draft.table.summary}"
    elif evidence.is_near_question:
        text = _("The documents may not answer this. These passages come closest:")
    else:
        text = _("The documents do not answer this question.")
    is_near = evidence.is_near_question or draft.table is not None
    found = list(build_excerpts(draft.question, draft.results, evidence, is_answered=False))
    if not is_near:
        # If no passage is near, the page shows only titles, so one passage of each document is enough.
        first_of: dict[int, tuple[Excerpt, QuotableUnit]] = {}
        for excerpt, unit in found:
            first_of.setdefault(excerpt.source.block.best.document_id, (excerpt, unit))
        found = list(first_of.values())
    return CompletedEvent(
        text=text,
        citations=(),
        state=AnswerState.CLOSEST if is_near else AnswerState.NOTHING,
        generator=draft.generator,
        notice=" ".join(draft.notices),
        usage=draft.usage,
        alternatives=locate_quotations(build_alternative_passage(*each) for each in found[:MOST_ALTERNATIVES]),
        choices=tuple(QuestionChoice(other, other) for other in meant),
    )
