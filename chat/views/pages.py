"""The chat's page, whole."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.models import Answer, Conversation
from chat.suggestions import suggestions
from chat.turns import turn_of
from chat.views.access import for_visitors, known_visitor, may_debug, own_conversation
from retrieval.models import Collection

CONVERSATIONS_SHOWN = 60


@require_GET
@for_visitors
def home(request: HttpRequest) -> HttpResponse:
    return page(request, conversation=None)


@require_GET
@for_visitors
def conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return page(request, conversation=own_conversation(request, conversation_id))


def page(
    request: HttpRequest, conversation: Conversation | None, *, status: int = 200, error: str = "", question: str = ""
) -> HttpResponse:
    debug = may_debug(request)
    answers = (
        conversation.answers.select_related("feedback").prefetch_related("citations")
        if conversation
        else Answer.objects.none()
    )
    context = {
        "conversation": conversation,
        "turns": [turn_of(answer, debug=debug) for answer in answers],
        "suggestions": [] if conversation else suggestions(request.user),
        "error": error,
        "question": question,
        **sidebar(request, shown=request.path),
    }
    return render(request, "chat/chat.html", context, status=status)


def sidebar(request: HttpRequest, shown: str = "") -> dict[str, Any]:
    own = Conversation.objects.of(request.user, known_visitor(request))[:CONVERSATIONS_SHOWN]
    return {
        "collections": list(Collection.objects.readable_by(request.user)),
        "groups": _by_age(list(own)),
        "shown": shown,
        "question_max_characters": settings.QUESTION_MAX_CHARACTERS,
        "htmx_config": json.dumps(_htmx_config()),
    }


def _by_age(conversations: list[Conversation]) -> list[tuple[str, list[Conversation]]]:
    """Conversations, newest first, under the headings that people look for them by."""
    today = timezone.localdate()
    groups: dict[str, list[Conversation]] = {}
    for found in conversations:
        days = (today - timezone.localdate(found.updated_at)).days
        heading = _("Today") if days < 1 else _("Last seven days") if days < 7 else _("Earlier")
        groups.setdefault(heading, []).append(found)
    return list(groups.items())


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
