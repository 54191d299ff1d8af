"""Views of the chat's pages."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chat.answering.writers import list_choosable_models
from chat.budgets import find_budget
from chat.conversations import rights
from chat.conversations.following import find_followed
from chat.conversations.listing import list_newest
from chat.conversations.rights import list_own_conversations
from chat.models import Answer, Conversation
from chat.pages.access import for_visitors, may_debug, own_conversation
from chat.pages.changes import Change, find_changes
from chat.pages.suggestions import follow_ups, questions_of, suggestions
from chat.pages.turns import ShownTurn, build_turn, build_withheld_turn
from core.user_types import AnyUser
from retrieval.admin.document_forms import upload_context
from retrieval.models import Collection as DocumentCollection
from retrieval.models import Document


@require_GET
@for_visitors
def home(request: HttpRequest) -> HttpResponse:
    return page(request, conversation=None)


@require_GET
@for_visitors
def conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return page(request, conversation=own_conversation(request, conversation_id))


def page(
    request: HttpRequest,
    conversation: Conversation | None,
    *,
    status: int = 200,
    error: str = "",
    question: str = "",
) -> HttpResponse:
    debug = may_debug(request)
    models = list_choosable_models(request.user)
    answers = list(saved_answers(conversation)) if conversation else []
    before = answers_before_branch(conversation) if conversation else []
    withheld = rights.find_withheld(request.user, [*before, *answers])
    changes = find_readable_changes([*before, *answers], withheld)
    followed = find_followed(request.user, answers)
    turns = [
        build_withheld_turn(answer)
        if answer.pk in withheld
        else build_turn(answer, debug=debug, models=models, changes=changes, followed=is_among(answer, followed))
        for answer in answers
    ]
    if turns and not turns[-1].is_withheld:
        turns[-1] = replace(turns[-1], follow_ups=follow_ups(answers[-1]))
    scope = _read_scope(request, conversation)
    context = {
        "conversation": conversation,
        "turns": turns,
        "models": models,
        "chosen_model": request.POST.get("model") or (conversation.model if conversation else ""),
        "turns_before": [
            build_withheld_turn(answer) if answer.pk in withheld else build_turn(answer, changes=changes)
            for answer in before
        ],
        "suggestions": [] if conversation else _suggest_within(request.user, scope),
        "error": error,
        "question": question,
        **sidebar(request, shown=request.path),
        **scope,
        **({} if conversation else upload_context(request.user)),
    }
    return render(request, "chat/chat.html", context, status=status)


def _suggest_within(user: AnyUser, scope: Mapping[str, Any]) -> list[tuple[str, DocumentCollection]]:
    document = scope["wanted_document"]
    return questions_of(document) if document is not None else suggestions(user, scope["wanted_collection"])


def _read_scope(request: HttpRequest, conversation: Conversation | None) -> dict[str, Any]:
    """Return the next question's scope, by default the last question's."""
    asked = request.POST or request.GET
    document, collection = asked.get("document", ""), asked.get("collection", "")
    if conversation and "collection" not in asked:
        document = str(conversation.document_id or "")
        collection = conversation.collection.slug if conversation.collection else ""
    readable = Document.objects.readable_by(request.user).select_related("collection")
    found = readable.filter(pk=int(document[:18])).first() if document.isdecimal() else None
    return {"wanted_collection": collection, "wanted_document": found}


def saved_answers(conversation: Conversation) -> QuerySet[Answer]:
    return conversation.answers.select_related("feedback", "repeats").prefetch_related("citations")


def find_readable_changes(answers: Iterable[Answer], withheld: Collection[uuid.UUID]) -> dict[int, Change]:
    """Return what became of the passages of the answers that are not withheld: their readers may read them today."""
    shown = (answer for answer in answers if answer.pk not in withheld)
    return find_changes(citation for answer in shown for citation in answer.citations.all())


def is_among(answer: Answer, followed: Collection[uuid.UUID] | None) -> bool | None:
    """Return whether the answer is followed; None if the reader cannot follow."""
    return None if followed is None else answer.pk in followed


def read_own(conversation: Conversation, user: AnyUser) -> list[ShownTurn]:
    """Return the turns of the reader's own conversation, read-only, with those before its branch."""
    answers = [*answers_before_branch(conversation), *saved_answers(conversation)]
    withheld = rights.find_withheld(user, answers)
    return [build_withheld_turn(answer) if answer.pk in withheld else build_turn(answer) for answer in answers]


def answers_before_branch(conversation: Conversation) -> list[Answer]:
    """Return the answers before a branch's edited question."""
    edited = conversation.branched_from
    if edited is None:
        return []
    earlier = saved_answers(edited.conversation).filter(created_at__lt=edited.created_at)
    return [*answers_before_branch(edited.conversation), *earlier]


def sidebar(request: HttpRequest, shown: str = "") -> dict[str, Any]:
    asked_for = request.GET.get("show", "")
    return {
        "collections": list(DocumentCollection.objects.readable_by(request.user)),
        "listing": list_newest(
            list_own_conversations(request),
            request.user,
            (request.GET.get("q") or request.POST.get("q") or "").strip(),
            int(asked_for[:6]) if asked_for.isdecimal() else 0,
        ),
        "shown": shown,
        "budget": find_budget(request.user),
        "question_max_characters": settings.QUESTION_MAX_CHARACTERS,
    }
