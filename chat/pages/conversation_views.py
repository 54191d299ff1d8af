from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event

from chat.pages.access import admit_visitors, get_own_conversation
from chat.pages.forms import TitleForm
from chat.pages.page_views import build_sidebar


@require_GET
@admit_visitors
def conversations(request: HttpRequest) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(f"{reverse('chat:home')}?{urlencode({'q': request.GET.get('q', '')})}")
    context = build_sidebar(request, shown=_read_browser_address(request))
    response = render(request, "chat/_conversations.html", context)
    found = context["listing"]
    if not found.wanted:
        return response
    said = ngettext("%(count)d conversation", "%(count)d conversations", found.count) % {"count": found.count}
    return trigger_client_event(response, "announce", {"sentence": said})


@require_GET
@admit_visitors
def show_conversation_entry(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return _render_conversation_entry(request, conversation_id)


@require_http_methods(["GET", "POST"])
@admit_visitors
def rename_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = get_own_conversation(request, conversation_id)
    form = TitleForm(request.POST if request.method == "POST" else None, instance=conversation)
    if form.is_valid():
        conversation.save(update_fields=["title"])
        return trigger_client_event(
            _render_conversation_entry(request, conversation_id), "announce", {"sentence": _("Renamed.")}
        )
    status = 422 if form.is_bound else 200
    return render(request, "chat/_conversation_rename.html", {"entry": conversation, "form": form}, status=status)


@require_POST
@admit_visitors
def delete_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    get_own_conversation(request, conversation_id).delete()
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("chat:home")
    shown = _read_browser_address(request)
    if reverse("chat:conversation", args=[conversation_id]) in shown:
        return HttpResponseClientRedirect(reverse("chat:home"))
    response = render(request, "chat/_conversations.html", build_sidebar(request, shown=shown))
    return trigger_client_event(response, "announce", {"sentence": _("The conversation is deleted.")})


def _render_conversation_entry(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = get_own_conversation(request, conversation_id)
    is_shown = reverse("chat:conversation", args=[conversation_id]) in _read_browser_address(request)
    context = {"entry": conversation, "is_shown": is_shown, "is_fresh": True}
    return render(request, "chat/_conversation_entry.html", context)


def _read_browser_address(request: HttpRequest) -> str:
    return request.headers.get("HX-Current-URL", "")
