"""What the API's views of questions and answers share: who may ask, how much, and whose answers are reached."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import Throttled
from rest_framework.request import Request

from chat.conversations import rights
from chat.exceptions import BudgetSpent, SiteBusy
from chat.models import Answer, Conversation
from chat.models.conversation import ConversationQuerySet
from chat.streaming import asking
from retrieval.api.permissions import MayAsk
from retrieval.api.problems import ApiView, Busy, JSONParser
from retrieval.key_limits import Scope, on_every_method


class AskersView(ApiView):
    """For whoever may ask; an API key needs the scope `ask`."""

    tag = "Answers"
    parser_classes = [JSONParser]
    permission_classes = [MayAsk]
    key_scopes = on_every_method(Scope.ASK)

    def for_the_caller(self, error: Exception) -> Exception:
        if isinstance(error, SiteBusy):
            return Busy(str(error), error.retry_after_seconds)
        if isinstance(error, BudgetSpent):
            return Throttled(error.retry_after_seconds, str(error))
        return super().for_the_caller(error)


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


def answer_within_reach(request: Request, answer_id: uuid.UUID) -> Answer:
    """An answer that the caller may read. Raises: Http404."""
    answer = _find(asking.answers_readable_by(request.user, visitor_behind(request)) | _of_nobody(), answer_id)
    conversation = answer.conversation
    if conversation.subject and not own_conversations(request).filter(pk=conversation.pk).exists():
        rights.tell_of_look(conversation)
    return answer


def own_answer(request: Request, answer_id: uuid.UUID, *, or_permitted: bool = False) -> Answer:
    """An answer that the caller asked for, and may act on; with ``or_permitted``, also as the permission to change
    answers allows. An answer of a program without an account is acted on without one.

    Raises: Http404.
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
    return get_object_or_404(answers.select_related("feedback", "repeats"), pk=answer_id)
