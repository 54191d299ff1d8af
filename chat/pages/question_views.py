"""Asking a question, and stopping its answer."""

from __future__ import annotations

import uuid

from asgiref.sync import async_to_sync
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import push_url, reswap, retarget

from chat.api.base import QuestionThrottle
from chat.pages.access import for_visitors, may_debug, own_conversation, stoppable_answer
from chat.pages.page_views import page, sidebar
from chat.pages.turns import build_turn
from chat.streaming import asking, streams
from retrieval.api.callers import caller_of
from retrieval.exceptions import DiskFull


@require_POST
@for_visitors
def ask(request: HttpRequest) -> HttpResponse:
    """Takes a question. htmx gets a turn that connects to the answer's stream; other browsers wait for the answer."""
    named = _uuid(request.POST.get("conversation", ""))
    throttle = QuestionThrottle()
    if not throttle.allow_request(request, ask):
        wait = _("Too many questions at once. Please try again in %(seconds)d seconds.")
        return _refuse(request, wait % {"seconds": round(throttle.wait() or 1)}, named, status=429)
    try:
        answer = asking.begin(
            request.POST.get("question", ""),
            user=request.user,
            visitor=asking.visitor_of(request),
            caller=caller_of(request),
            conversation_id=named,
            # No collection has such a name, and the database would refuse to look for it.
            collection=request.POST.get("collection", "").replace("\0", "\ufffd"),
            method=request.POST.get("method", ""),
            anew=bool(request.POST.get("anew")),
        )
    except asking.InvalidQuestion as error:
        return _refuse(request, str(error), named)
    except asking.SiteBusy as error:
        response = _refuse(request, str(error), named, status=503)
        response["Retry-After"] = str(error.retry_after_seconds)
        return response
    except asking.BudgetSpent as error:
        response = _refuse(request, str(error), named, status=429)
        response["Retry-After"] = str(error.retry_after_seconds)
        return response
    except DiskFull as error:
        return _refuse(request, str(error), named, status=507)
    address = reverse("chat:conversation", args=[answer.conversation_id])
    if not request.htmx:  # type: ignore[attr-defined]
        async_to_sync(streams.finish)(answer.pk, caller=caller_of(request))
        return redirect(f"{address}#answer-{answer.pk}")
    context = {
        "turn": build_turn(answer, debug=may_debug(request)),
        "conversation": answer.conversation,
        "is_new": named is None,
        **sidebar(request),
    }
    return push_url(render(request, "chat/_asked.html", context), address)


def _refuse(request: HttpRequest, message: str, conversation_id: uuid.UUID | None, status: int = 422) -> HttpResponse:
    if request.htmx:  # type: ignore[attr-defined]
        response = render(request, "chat/_question_error.html", {"error": message}, status=status)
        return reswap(retarget(response, "#question-error"), "outerHTML")
    try:
        found = own_conversation(request, conversation_id) if conversation_id else None
    except Http404:
        found = None
    return page(request, found, status=status, error=message, question=request.POST.get("question", ""))


@require_POST
@for_visitors
def stop(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """Ends the writing of an answer. Its stream shows the saved outcome, so htmx needs nothing from here."""
    answer = stoppable_answer(request, answer_id)
    async_to_sync(streams.stop)(answer.pk)
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(status=204)
    return redirect("chat:conversation", answer.conversation_id)


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text) if text else None
    except ValueError:
        return uuid.UUID(int=0)  # Named, but nobody's.
