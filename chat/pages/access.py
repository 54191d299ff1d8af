from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, resolve_url
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect

from chat.conversations import rights
from chat.conversations.rights import find_readable_answer, list_own_conversations
from chat.models import Answer, Conversation
from core import users

View = Callable[..., HttpResponseBase]


def admit_visitors(view: View) -> View:
    """Wrap ``view`` so that no response is cached, and visitors must sign in if the site requires it."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
            if request.htmx:  # type: ignore[attr-defined]
                return HttpResponseClientRedirect(f"{resolve_url(settings.LOGIN_URL)}?next={reverse('chat:home')}")
            # A submitted form cannot be repeated after the login, which then leads to the home page.
            return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("chat:home"))
        return view(request, *args, **kwargs)

    return never_cache(guarded)


def get_own_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> Conversation:
    return get_object_or_404(list_own_conversations(request).select_related("collection"), pk=conversation_id)


def get_explainable_answer(request: HttpRequest, answer_id: uuid.UUID) -> Answer:
    """Return an answer whose text and trace (the record of its search) the user may read. Raises: Http404."""
    if not may_debug(request):
        raise Http404
    answer = find_readable_answer(request, answer_id)
    if rights.is_withheld(request.user, answer):
        raise Http404
    return answer


def may_correct_answers(request: HttpRequest) -> bool:
    return users.is_staff_with(request.user, "chat.view_answer")


def may_debug(request: HttpRequest) -> bool:
    return users.may_debug(request.user)
