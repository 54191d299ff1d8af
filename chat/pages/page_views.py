from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TypedDict

from django.conf import settings
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from chat.answering.writers import list_choosable_models
from chat.budgets import DailyBudget, find_budget
from chat.conversations import rights
from chat.conversations.following import find_followed_answer_ids
from chat.conversations.listing import ConversationListing, list_newest_conversations
from chat.conversations.rights import list_own_conversations
from chat.models import Answer, Conversation
from chat.pages.access import admit_visitors, get_own_conversation, may_correct_answers, may_debug
from chat.pages.changes import PassageChange, find_changes
from chat.pages.filters import build_filter_context
from chat.pages.front_page import FrontPage, build_front_page
from chat.pages.suggestions import list_follow_up_questions, list_questions
from chat.pages.turns import ShownTurn, build_turn, build_withheld_turn
from core.user_types import AnyUser
from retrieval.admin.document_forms import build_upload_context
from retrieval.models import Collection as DocumentCollection
from retrieval.models import Document


class QuestionScope(TypedDict):
    """The collection (by its slug) or the document that the next question searches."""

    wanted_collection: str
    wanted_document: Document | None


class Sidebar(TypedDict):
    """The template context of the sidebar on all pages of the chat. ``shown`` is the path of the open page."""

    collections: list[DocumentCollection]
    listing: ConversationListing
    shown: str
    budget: DailyBudget | None
    question_max_characters: int


@require_safe
@admit_visitors
def home(request: HttpRequest) -> HttpResponse:
    return render_chat_page(request, conversation=None)


@require_safe
@admit_visitors
def conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return render_chat_page(request, conversation=get_own_conversation(request, conversation_id))


def render_chat_page(
    request: HttpRequest,
    conversation: Conversation | None,
    *,
    status: int = 200,
    error: str = "",
    question: str = "",
) -> HttpResponse:
    debug, mends = may_debug(request), may_correct_answers(request)
    models = list_choosable_models(request.user)
    answers = list(list_saved_answers(conversation)) if conversation else []
    before = list_answers_before_branch(conversation) if conversation else []
    withheld = rights.find_withheld_answers(request.user, [*before, *answers])
    changes = find_changes_of_answers([*before, *answers], withheld)
    followed = find_followed_answer_ids(request.user, answers)
    turns = [
        build_withheld_turn(answer)
        if answer.pk in withheld
        else build_turn(
            answer,
            debug=debug,
            may_correct_answers=mends,
            models=models,
            changes=changes,
            followed=is_followed(answer, followed),
        )
        for answer in answers
    ]
    if turns and not turns[-1].is_withheld:
        turns[-1] = replace(turns[-1], follow_ups=list_follow_up_questions(answers[-1]))
    scope = _read_scope(request, conversation)
    around = build_sidebar(request, shown=request.path)
    filters = build_filter_context(request.user, scope["wanted_collection"], conversation, request.POST or request.GET)
    context = {
        "conversation": conversation,
        "turns": turns,
        "models": models,
        "chosen_model": request.POST.get("model") or (conversation.model if conversation else ""),
        "turns_before": [
            build_withheld_turn(answer) if answer.pk in withheld else build_turn(answer, changes=changes)
            for answer in before
        ],
        "front": None if conversation else _build_scoped_front_page(request.user, scope, around),
        "error": error or filters["filter_problem"],
        "question": question,
        **around,
        **scope,
        **filters,
        **({} if conversation else build_upload_context(request.user)),
    }
    return render(request, "chat/chat.html", context, status=status)


def _build_scoped_front_page(user: AnyUser, scope: QuestionScope, sidebar: Sidebar) -> FrontPage:
    document, chosen = scope["wanted_document"], scope["wanted_collection"]
    if document is not None:
        return FrontPage((), 0, (), tuple(question for question, _ in list_questions(document)))
    # A draft (an unpublished copy) is searched only if a user chooses it.
    collections = (
        [each for each in sidebar["collections"] if each.slug == chosen]
        if chosen
        else list(DocumentCollection.objects.readable_by(user).in_service())
    )
    recent = [each for _, group in sidebar["listing"].groups for each in group]
    return build_front_page(user, collections, recent)


def _read_scope(request: HttpRequest, conversation: Conversation | None) -> QuestionScope:
    asked = request.POST or request.GET
    document, collection = asked.get("document", ""), asked.get("collection", "")
    if conversation and "collection" not in asked:
        document = str(conversation.document_id or "")
        collection = conversation.collection.slug if conversation.collection else ""
    readable = Document.objects.readable_by(request.user).select_related("collection")
    found = readable.filter(pk=int(document[:18])).first() if document.isdecimal() else None
    return {"wanted_collection": collection, "wanted_document": found}


def list_saved_answers(conversation: Conversation) -> QuerySet[Answer]:
    read = Prefetch("citations__document", Document.objects.only("ingested_at"))
    return conversation.answers.select_related("feedback", "repeats").prefetch_related("citations", read)


def find_changes_of_answers(answers: Iterable[Answer], withheld: Collection[uuid.UUID]) -> dict[int, PassageChange]:
    shown = (answer for answer in answers if answer.pk not in withheld)
    return find_changes(citation for answer in shown for citation in answer.citations.all())


def is_followed(answer: Answer, followed: Collection[uuid.UUID] | None) -> bool | None:
    return None if followed is None else answer.pk in followed


def load_own_turns(conversation: Conversation, user: AnyUser) -> list[ShownTurn]:
    answers = [*list_answers_before_branch(conversation), *list_saved_answers(conversation)]
    withheld = rights.find_withheld_answers(user, answers)
    return [build_withheld_turn(answer) if answer.pk in withheld else build_turn(answer) for answer in answers]


def list_answers_before_branch(conversation: Conversation) -> list[Answer]:
    """Return the answers that were given before the conversation branched from another one.

    Editing an earlier question begins a new conversation (a branch).
    """
    edited = conversation.branched_from
    if edited is None:
        return []
    earlier = list_saved_answers(edited.conversation).filter(created_at__lt=edited.created_at)
    return [*list_answers_before_branch(edited.conversation), *earlier]


def build_sidebar(request: HttpRequest, shown: str = "") -> Sidebar:
    asked_for = request.GET.get("show", "")
    return {
        "collections": list(DocumentCollection.objects.readable_by(request.user)),
        "listing": list_newest_conversations(
            list_own_conversations(request),
            request.user,
            (request.GET.get("q") or request.POST.get("q") or "").strip(),
            int(asked_for[:6]) if asked_for.isdecimal() else 0,
        ),
        "shown": shown,
        "budget": find_budget(request.user),
        "question_max_characters": settings.QUESTION_MAX_CHARACTERS,
    }
