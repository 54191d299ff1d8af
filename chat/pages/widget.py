"""Serve the chat in a frame on other sites (setting WIDGET_SITES).

The frame sends no cookies, so its reader can search only public collections.
"""

from __future__ import annotations

import uuid

from csp.constants import NONE
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.templatetags.static import static
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from chat.conversations import rights
from chat.conversations.rights import list_unowned_answers
from chat.pages.turns import build_turn, build_withheld_turn


@require_safe
def script(request: HttpRequest) -> HttpResponse:
    """Redirect to the widget's script, which opens the chat in an iframe. Raises: as :func:`frame`."""
    _require_widget_sites()
    return redirect(static("chat/widget.js"))


@require_safe
@xframe_options_exempt
def show_widget(request: HttpRequest) -> HttpResponse:
    """Show the chat for the widget's iframe.

    Raises: Http404 if WIDGET_SITES is empty or visitors must sign in.
    """
    _require_widget_sites()
    context = {"collection": request.GET.get("collection", ""), "heading": request.GET.get("heading", "")[:100]}
    response = render(request, "chat/widget.html", context)
    policy = {
        "default-src": [NONE],
        "form-action": [NONE],
        "frame-ancestors": settings.WIDGET_SITES,
    }
    # The middleware of django-csp reads this attribute.
    response._csp_config = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"] | policy  # type: ignore[attr-defined]
    return response


@require_safe
def show_widget_answer(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    _require_widget_sites()
    found = get_object_or_404(list_unowned_answers().select_related("feedback", "repeats"), pk=answer_id)
    is_withheld = rights.is_withheld(AnonymousUser(), found)
    turn = build_withheld_turn(found) if is_withheld else build_turn(found, viewer=AnonymousUser())
    return render(request, "chat/_turn.html", {"turn": turn, "sources": turn.sources, "readonly": True})


def _require_widget_sites() -> None:
    if not settings.WIDGET_SITES or settings.CHAT_REQUIRES_LOGIN:
        raise Http404
