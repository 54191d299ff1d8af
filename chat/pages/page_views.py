"""The chat's page, whole."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chat.budgets import budget_of
from chat.conversations import rights
from chat.conversations.listing import list_newest
from chat.models import Answer, Conversation
from chat.pages.access import for_visitors, known_visitor, may_debug, own_conversation
from chat.pages.forms import TitleForm
from chat.pages.suggestions import suggestions
from chat.pages.turns import ShownTurn, build_turn, build_withheld_turn
from retrieval.admin.document_forms import upload_context
from retrieval.models import Collection


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
    renaming: TitleForm | None = None,
    refused_feedback: ShownTurn | None = None,
) -> HttpResponse:
    debug = may_debug(request)
    unfolded = request.GET.get("unfold", "")
    answers = saved_answers(conversation) if conversation else ()
    withheld = rights.withheld_from(request.user, answers)
    turns = [
        build_withheld_turn(answer)
        if answer.pk in withheld
        else build_turn(answer, debug=debug, unfolded=str(answer.pk) == unfolded)
        for answer in answers
    ]
    if refused_feedback and refused_feedback.id not in withheld:
        turns = [refused_feedback if turn.id == refused_feedback.id else turn for turn in turns]
    context = {
        "conversation": conversation,
        "turns": turns,
        "suggestions": [] if conversation else suggestions(request.user),
        "error": error,
        "question": question,
        "renaming": renaming,
        "wanted_collection": request.POST.get("collection") or request.GET.get("collection", ""),
        **sidebar(request, shown=request.path),
        **({} if conversation else upload_context(request.user)),
    }
    return render(request, "chat/chat.html", context, status=status)


def saved_answers(conversation: Conversation) -> QuerySet[Answer]:
    """The conversation's answers with all that a page shows of them."""
    return conversation.answers.select_related("feedback", "repeats").prefetch_related("citations")


def sidebar(request: HttpRequest, shown: str = "") -> dict[str, Any]:
    asked_for = request.GET.get("show", "")
    return {
        "collections": list(Collection.objects.readable_by(request.user)),
        "listing": list_newest(
            Conversation.objects.of(request.user, known_visitor(request)),
            request.user,
            (request.GET.get("q") or request.POST.get("q") or "").strip(),
            int(asked_for[:6]) if asked_for.isdecimal() else 0,
        ),
        "shown": shown,
        "budget": budget_of(request.user),
        "question_max_characters": settings.QUESTION_MAX_CHARACTERS,
        "htmx_config": json.dumps(_htmx_config()),
    }


def _htmx_config() -> dict[str, Any]:
    return {
        **settings.DJANGO_HTMX_CONFIG,
        # Pages are read from the server again: a snapshot of half an answer would connect to its stream a second time.
        "historyCacheSize": 0,
        "refreshOnHistoryMiss": True,
        "responseHandling": [
            {"code": "204", "swap": False},
            {"code": "[23]..", "swap": True},
            {"code": "42[29]", "swap": True},
            {"code": "[45]..", "swap": False, "error": True},
        ],
    }
