from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import budgets
from chat.answering import writers
from chat.conversations.rights import list_unowned_conversations
from chat.exceptions import InvalidQuestion
from chat.models import Answer, Conversation
from chat.streaming.admission import ADMISSION
from core import disk
from core.key_limits import get_limits
from core.user_types import AnyUser
from retrieval.exceptions import InvalidQuery
from retrieval.models import Collection, Document
from retrieval.rights.chosen_filters import build_search_restrictions
from retrieval.rights.search_filters import build_filters, check_filter_fields
from retrieval.search.understanding.syntax import parse_question
from retrieval.types import SearchMethod, Turn

# Surrogates and these control characters are removed, because PostgreSQL cannot store some of them.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff]")


@disk.guard_against_full_disk()
def create_answer(
    question: str,
    *,
    user: AnyUser,
    visitor: str,
    caller: str = "",
    conversation_id: uuid.UUID | None = None,
    collection: str | None = None,
    document: int | None = None,
    filters: Mapping[str, Any] | None = None,
    edits: Answer | None = None,
    method: str = "",
    model: str = "",
    anew: bool = False,
    history: Sequence[Turn] | None = None,
) -> Answer:
    """Create a PENDING answer (not yet written) in a conversation.

    - ``conversation_id``: None for a new conversation.
    - ``collection``: the slug of the collection to search; empty for all collections.
    - ``document``: the id of the only document to search. If ``collection`` and ``document`` are both None, the last
      question's are used.
    - ``filters``: in the form of ``chosen_filters``. If None, the last question's filters are used.
    - ``edits``: the answer whose question was edited. A new conversation then branches off before this answer.
    - ``model``: empty for the default.
    - ``anew``: reuse no earlier answer.
    - ``history``, oldest first, replaces the conversation's own.
    - ``caller``: an account or address, whose simultaneous answers are limited.

    Raises, with messages for the user: InvalidQuestion, SiteBusy, BudgetSpent, DiskFull.
    """
    question = clean_question(question)
    limits = get_limits(user)
    if method and method not in {*SearchMethod, "default"}:
        raise InvalidQuestion(_("There is no search method named “%s”.") % method[:40], field="method")
    models = writers.list_language_models(user)
    if model and model not in models:
        raise InvalidQuestion(_("There is no language model named “%s” for you.") % model[:60], field="model")
    with _reserve_queue_place(caller) as answer_id, transaction.atomic():
        budgets.count_asked_question(user)
        if conversation_id is not None:
            conversation = _find_continuable_conversations(user, visitor).filter(pk=conversation_id).first()
            if conversation is None:
                raise InvalidQuestion(_("This conversation does not exist, or is not yours."), field="conversation")
            if collection is not None or document is not None:
                before = conversation.collection_id, conversation.document_id
                conversation.collection, conversation.document = _find_scope(user, collection or "", document)
                if before != (conversation.collection_id, conversation.document_id):
                    conversation.filters = {}
            if filters is not None:
                conversation.filters = dict(filters)
            conversation.updated_at = timezone.now()
            if model and not anew:
                conversation.model = model
            conversation.save(update_fields=["updated_at", "model", "collection", "document", "filters"])
        else:
            within, only = _find_scope(user, collection or "", document)
            conversation = Conversation.objects.create(
                owner=user if user.is_authenticated else None,
                visitor="" if user.is_authenticated else visitor,
                collection=within,
                document=only,
                filters=dict(filters or {}),
                branched_from=edits,
                title=question[:200],
                key=limits.key if limits else "",
                model=model or (edits.conversation.model if edits else ""),
            )
        if filters:
            _check_filters(user, conversation)
        return Answer.objects.create(
            id=answer_id,
            conversation=conversation,
            question=question,
            collection=conversation.collection,
            document=conversation.document,
            asked_filters=conversation.filters,
            method="" if method == "default" else method,
            model=model or (conversation.model if conversation.model in models else ""),
            anew=anew,
            asked_within=sorted(limits.collections) if limits and limits.collections is not None else None,
            history=None if history is None else [asdict(turn) for turn in history],
        )


def _find_scope(user: AnyUser, collection: str, document: int | None) -> tuple[Collection | None, Document | None]:
    if document is not None:
        readable = Document.objects.readable_by(user).select_related("collection")
        if (only := readable.filter(pk=document).first()) is None:
            raise InvalidQuestion(_("There is no such document."), field="document")
        return only.collection, only
    try:
        filters = build_filters(user, collection)
    except InvalidQuery as error:
        raise InvalidQuestion(str(error), field="collection") from error
    return (Collection.objects.get(pk=filters.collections[0]) if collection else None), None


def _check_filters(user: AnyUser, conversation: Conversation) -> None:
    slug = conversation.collection.slug if conversation.collection else ""
    try:
        check_filter_fields(build_filters(user, slug, **build_search_restrictions(conversation.filters)))
    except InvalidQuery as error:
        raise InvalidQuestion(str(error), field="filters") from error


@contextmanager
def _reserve_queue_place(caller: str) -> Iterator[uuid.UUID]:
    """Reserve a place in the queue, and yield the id for a new answer. An error releases the place."""
    answer_id = uuid.uuid4()
    ADMISSION.reserve(answer_id, caller)
    try:
        yield answer_id
    except BaseException:
        ADMISSION.release_reservation(answer_id)
        raise


def _find_continuable_conversations(user: AnyUser, visitor: str) -> QuerySet[Conversation]:
    if not visitor and not user.is_authenticated:
        return list_unowned_conversations()
    return Conversation.objects.owned_by(user, visitor)


def clean_question(question: str) -> str:
    """Return the question without unprintable characters and surrounding white space. Raises: InvalidQuestion."""
    printable = _UNPRINTABLE.sub("", question).strip()
    if not printable:
        raise InvalidQuestion(_("Please type a question."))
    if len(printable) > settings.QUESTION_MAX_CHARACTERS:
        message = _("The question has %(length)d characters; please keep it within %(limit)d.")
        raise InvalidQuestion(message % {"length": len(printable), "limit": settings.QUESTION_MAX_CHARACTERS})
    try:
        parse_question(printable)
    except InvalidQuery as error:
        raise InvalidQuestion(_("The question only says what to leave out: add what to look for.")) from error
    return printable
