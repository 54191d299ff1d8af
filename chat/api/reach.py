"""What the caller of the API may reach: their own, and what belongs to nobody but whoever knows its random id."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db.models import QuerySet
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from chat import asking
from chat.conversations import rights
from chat.models import Answer, Conversation
from chat.models.conversation import ConversationQuerySet


def visitor_behind(request: Request) -> str:
    """The browser behind an anonymous request; empty for a user, and for a program that keeps no cookies.

    A session is not begun for such a program: each of its calls would leave one behind.
    """
    if request.user.is_authenticated or settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return ""
    return asking.visitor_of(request._request)


def session_behind(request: Request) -> str:
    """The key of the session that says who calls; empty for other credentials."""
    is_by_session = isinstance(request.successful_authenticator, SessionAuthentication)
    return request._request.session.session_key or "" if is_by_session else ""


def own_conversations(request: Request) -> ConversationQuerySet:
    """The conversations of the user, or of the visitor's browser; none for a program that keeps no cookies."""
    return Conversation.objects.of(request.user, visitor_behind(request))


def conversation_within_reach(request: Request, conversation_id: uuid.UUID) -> Conversation:
    """Raises: NotFound when there is none, or it is somebody else's: which of the two is not told."""
    within_reach = own_conversations(request) | Conversation.objects.filter(owner=None, visitor="")
    found = within_reach.select_related("collection").filter(pk=conversation_id).first()
    if found is None:
        raise NotFound("This conversation does not exist, or is not yours.")
    return found


def answer_within_reach(request: Request, answer_id: uuid.UUID) -> Answer:
    """Raises: NotFound when there is none, or it is somebody else's: which of the two is not told."""
    answer = _find(asking.answers_readable_by(request.user, visitor_behind(request)) | _of_nobody(), answer_id)
    conversation = answer.conversation
    if conversation.subject and not own_conversations(request).filter(pk=conversation.pk).exists():
        rights.tell_of_look(conversation)
    return answer


def own_answer(request: Request, answer_id: uuid.UUID, *, or_permitted: bool = False) -> Answer:
    """An answer that the caller asked for, and may act on; with ``or_permitted``, also as the permission to change
    answers allows. An answer of a program without an account is acted on without one.

    Raises: NotFound when there is none, or it is somebody else's: which of the two is not told.
    """
    answers = Answer.objects.filter(conversation__in=own_conversations(request))
    if not request.user.is_authenticated:
        answers = answers | _of_nobody()
    elif or_permitted and rights.may_act_on_all(request.user):
        answers = Answer.objects.all()
    return _find(answers, answer_id)


def _of_nobody() -> QuerySet[Answer]:
    return Answer.objects.filter(conversation__owner=None, conversation__visitor="")


def _find(answers: QuerySet[Answer], answer_id: uuid.UUID) -> Answer:
    found = answers.select_related("feedback", "repeats").filter(pk=answer_id).first()
    if found is None:
        raise NotFound("This answer does not exist, or is not yours.")
    return found
