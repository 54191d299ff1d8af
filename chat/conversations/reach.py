"""The conversations and answers that a request may reach, from a page and over the API."""

from __future__ import annotations

import uuid

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from chat.conversations import rights
from chat.models import Answer, Conversation
from chat.models.conversation import ConversationQuerySet
from core.audit_signal import record_event

VISITOR_KEY = "visitor"


def visitor_of(request: HttpRequest) -> str:
    """An id for the browser of someone who is not signed in, kept in the session."""
    session = request.session
    if VISITOR_KEY not in session:
        session[VISITOR_KEY] = uuid.uuid4().hex
    return str(session[VISITOR_KEY])


def own_conversations(request: HttpRequest) -> ConversationQuerySet:
    """The conversations of the user, or of the visitor's browser.

    Only asking gives a browser an id, so that looking around leaves no session behind.
    """
    return Conversation.objects.of(request.user, str(request.session.get(VISITOR_KEY, "")))


def conversations_of_nobody() -> ConversationQuerySet:
    """Conversations of programs without an account or cookies, which reach them by their ids."""
    return Conversation.objects.filter(owner=None, visitor="")


def is_own(request: HttpRequest, conversation: Conversation) -> bool:
    return own_conversations(request).filter(pk=conversation.pk).exists()


def own_answers(request: HttpRequest) -> QuerySet[Answer]:
    return Answer.objects.filter(conversation__in=own_conversations(request))


def answers_of_nobody() -> QuerySet[Answer]:
    return Answer.objects.filter(conversation__owner=None, conversation__visitor="")


def stoppable_answers(request: HttpRequest) -> QuerySet[Answer]:
    """The caller's own answers; with the permission to change answers, anybody's."""
    return Answer.objects.all() if rights.may_act_on_all(request.user) else own_answers(request)


def readable_answers(request: HttpRequest) -> QuerySet[Answer]:
    """Answers of the caller's own conversations. Staff with the permission to view answers may also read those of
    others, if they may read their documents.
    """
    if not rights.may_read_all(request.user):
        return own_answers(request)
    closed = rights.is_closed_to(request.user)
    return (
        Answer.objects.all() if closed is None else Answer.objects.filter(Q(conversation__owner=request.user) | ~closed)
    )


def find_readable(request: HttpRequest, answer_id: uuid.UUID, *, of_nobody: bool = False) -> Answer:
    """An answer that the caller may read; with ``of_nobody`` also one of a program without an account. Reading another
    person's answer is recorded in the audit log. Raises: Http404.
    """
    answers = readable_answers(request)
    if of_nobody:
        answers = answers | answers_of_nobody()
    answer = get_object_or_404(answers.select_related("feedback", "repeats", "conversation"), pk=answer_id)
    if answer.conversation.subject and not is_own(request, answer.conversation):
        record_event("conversation.viewed", answer.conversation)
    return answer
