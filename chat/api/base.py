"""Shared by the API's views of questions and answers: permission to ask, limits, and the caller's own answers."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.shortcuts import get_object_or_404
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import Throttled
from rest_framework.request import Request

from chat.conversations.reach import answers_of_nobody, own_answers, visitor_of
from chat.exceptions import BudgetSpent, SiteBusy
from chat.models import Answer
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
    """The browser's id for an anonymous request; empty for a user, and for a program that keeps no cookies.

    No session is begun for such a program: each of its calls would leave one behind.
    """
    if request.user.is_authenticated or settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return ""
    return visitor_of(request._request)


def session_behind(request: Request) -> str:
    """The key of the session that authenticates the caller; empty for other credentials."""
    is_by_session = isinstance(request.successful_authenticator, SessionAuthentication)
    return request._request.session.session_key or "" if is_by_session else ""


def own_answer(request: Request, answer_id: uuid.UUID) -> Answer:
    """An answer that the caller asked for. An answer asked without an account or cookies can be reached by anyone with
    its id.

    Raises: Http404.
    """
    answers = own_answers(request._request)
    if not request.user.is_authenticated:
        answers = answers | answers_of_nobody()
    return get_object_or_404(answers, pk=answer_id)
