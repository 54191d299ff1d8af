"""What people do with their conversations."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRedirect

from chat.views.access import for_visitors, own_conversation
from chat.views.pages import sidebar


@require_POST
@for_visitors
def delete_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    own_conversation(request, conversation_id).delete()
    shown = request.htmx.current_url_abs_path if request.htmx else ""  # type: ignore[attr-defined]
    if request.htmx and shown != reverse("chat:conversation", args=[conversation_id]):  # type: ignore[attr-defined]
        return render(request, "chat/_conversations.html", sidebar(request, shown=shown or ""))
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(reverse("chat:home"))
    return redirect("chat:home")
