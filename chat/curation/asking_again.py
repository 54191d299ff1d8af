from __future__ import annotations

import logging
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from asgiref.sync import async_to_sync
from django.conf import settings
from django.db import DatabaseError
from django.utils.translation import gettext as _

from chat.answering import pipeline
from chat.answering.approved_answers import get_approval
from chat.models import Answer, Citation
from chat.pages.answer_text import describe_approval
from chat.pages.cards import build_cited_passage, build_result_cards
from chat.pages.rendering import render_answer
from chat.streaming import payloads
from chat.types import AnswerDraft, CompletedEvent, FailedEvent
from core import deadline
from core.exceptions import RagsiteError
from core.user_types import AnyUser
from retrieval.search.search_places import wait_for_search_slot
from retrieval.types import SearchFilters, TriedQuestions

logger = logging.getLogger(__name__)


def build_answer_context(
    answer: Answer, citations: Sequence[Citation] = (), sources: AbstractSet[int] = frozenset()
) -> dict[str, object]:
    approval = get_approval(answer.approved)
    needs_passage = citations and not answer.refused and not answer.approved_id
    return {
        "answer": answer,
        "text": render_answer(answer.text, ()) if answer.text else answer.error,
        # Citations of several rows of a table may have the same description, which is listed once.
        "cited": list(
            {
                (cited.marker, cited.document, cited.where): cited for cited in map(build_cited_passage, citations)
            }.values()
        ),
        "alternatives": build_result_cards(answer.alternatives),
        "approved": describe_approval(approval.by, approval.on) if approval else "",
        "passage": citations[0].chunk_id if needs_passage else None,
        "quoted": {citation.chunk_id for citation in citations},
        "sources": sources,
        "percent": None if answer.confidence is None else round(100 * answer.confidence),
    }


def ask_again(user: AnyUser, answer: Answer, tried: TriedQuestions | None = None) -> dict[str, object]:
    """Answer the question with the user's rights, and return the template's context. Nothing is saved.

    For a trial, ``tried`` has questions by chunk id, as if curators had stored them with these passages.
    """
    try:
        with wait_for_search_slot(), deadline.limit_time(settings.QUESTION_SECONDS):
            return build_answer_context(
                *async_to_sync(_ask)(answer.standalone_question, answer.build_search_filters(user), tried)
            )
    except (RagsiteError, DatabaseError, TimeoutError) as error:
        logger.warning("A question could not be asked again: %s", error)
        told = str(error) if isinstance(error, RagsiteError) else _("The site did not answer in time.")
        return build_answer_context(Answer(error=told))


async def _ask(
    question: str, filters: SearchFilters, tried: TriedQuestions | None
) -> tuple[Answer, Sequence[Citation], frozenset[int]]:
    draft: AnswerDraft | None = None
    async for event in pipeline.answer_question(question, filters, tried=tried):
        match event:
            case AnswerDraft():
                draft = event
            case CompletedEvent():
                sources = draft.sources if draft is not None else ()
                found = frozenset(passage.chunk_id for source in sources for passage in source.block.passages)
                return *payloads.build_unsaved_answer(question, draft, event), found
            case FailedEvent():
                return Answer(error=event.message), (), frozenset()
    return Answer(error=_("The answer broke off.")), (), frozenset()
