"""Who may see which page."""

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
from chat.models import Answer, Conversation
from chat.streaming import asking

View = Callable[..., HttpResponseBase]


def for_visitors(view: View) -> View:
    """Sends visitors to the login where the site asks for one. Pages are personal, so no cache keeps them."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
            if request.htmx:  # type: ignore[attr-defined]
                return HttpResponseClientRedirect(f"{resolve_url(settings.LOGIN_URL)}?next={reverse('chat:home')}")
            # What was posted cannot be posted again after the login: that leads to the empty page.
            return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("chat:home"))
        return view(request, *args, **kwargs)

    return never_cache(guarded)


def own_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> Conversation:
    own = Conversation.objects.of(request.user, known_visitor(request)).select_related("collection")
    return get_object_or_404(own, pk=conversation_id)


def is_own(request: HttpRequest, conversation: Conversation) -> bool:
    return Conversation.objects.of(request.user, known_visitor(request)).filter(pk=conversation.pk).exists()


def own_answer(request: HttpRequest, answer_id: uuid.UUID) -> Answer:
    own = Conversation.objects.of(request.user, known_visitor(request))
    return get_object_or_404(Answer.objects.filter(conversation__in=own), pk=answer_id)


def stoppable_answer(request: HttpRequest, answer_id: uuid.UUID) -> Answer:
    """One's own; anybody's with the permission to change answers."""
    if rights.may_act_on_all(request.user):
        return get_object_or_404(Answer, pk=answer_id)
    return own_answer(request, answer_id)


def readable_answer(request: HttpRequest, answer_id: uuid.UUID) -> Answer:
    answer = get_object_or_404(asking.answers_readable_by(request.user, known_visitor(request)), pk=answer_id)
    if not is_own(request, answer.conversation):
        rights.tell_of_look(answer.conversation)
    return answer


def known_visitor(request: HttpRequest) -> str:
    """The browser's id, or nothing: only asking gives it one, so that looking around leaves no session behind."""
    return str(request.session.get(asking.VISITOR_KEY, ""))


def explainable_answer(request: HttpRequest, answer_id: uuid.UUID) -> Answer:
    """An answer that the caller may read now and look into. Raises: Http404."""
    if not may_debug(request):
        raise Http404
    answer = readable_answer(request, answer_id)
    if rights.is_withheld(request.user, answer):
        raise Http404
    return answer


def may_debug(request: HttpRequest) -> bool:
    return settings.CHAT_DEBUG_FOR_EVERYONE or rights.may_read_all(request.user)
