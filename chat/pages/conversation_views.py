"""The list of one's conversations, and what people do with its entries."""

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

from chat.pages.access import for_visitors, own_conversation
from chat.pages.forms import TitleForm
from chat.pages.page_views import page, sidebar


@require_GET
@for_visitors
def conversations(request: HttpRequest) -> HttpResponse:
    """The list, narrowed to what mentions ``?q=`` and as long as ``?show=`` wants it."""
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(f"{reverse('chat:home')}?{urlencode({'q': request.GET.get('q', '')})}")
    context = sidebar(request, shown=_shown_path(request))
    response = render(request, "chat/_conversations.html", context)
    found = context["listing"]
    if not found.wanted:
        return response
    said = ngettext("%(count)d conversation", "%(count)d conversations", found.count) % {"count": found.count}
    return trigger_client_event(response, "announce", {"sentence": said})


@require_GET
@for_visitors
def conversation_entry(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    """One entry of the list as it was before somebody began to rename it."""
    return _entry(request, conversation_id)


@require_http_methods(["GET", "POST"])
@for_visitors
def rename_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    """A form in the place of the entry; then the entry with its new title."""
    conversation = own_conversation(request, conversation_id)
    form = TitleForm(request.POST if request.method == "POST" else None, instance=conversation)
    if form.is_valid():
        conversation.save(update_fields=["title"])
        if not request.htmx:  # type: ignore[attr-defined]
            return redirect("chat:conversation", conversation_id)
        return trigger_client_event(_entry(request, conversation_id), "announce", {"sentence": _("Renamed.")})
    status = 422 if form.is_bound else 200
    if not request.htmx:  # type: ignore[attr-defined]
        conversation.refresh_from_db(fields=["title"])
        return page(request, conversation, status=status, renaming=form)
    return render(request, "chat/_conversation_rename.html", {"entry": conversation, "form": form}, status=status)


@require_POST
@for_visitors
def delete_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    own_conversation(request, conversation_id).delete()
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("chat:home")
    shown = _shown_path(request)
    if shown == reverse("chat:conversation", args=[conversation_id]):
        return HttpResponseClientRedirect(reverse("chat:home"))
    response = render(request, "chat/_conversations.html", sidebar(request, shown=shown))
    return trigger_client_event(response, "announce", {"sentence": _("The conversation is deleted.")})


def _entry(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = own_conversation(request, conversation_id)
    is_shown = _shown_path(request) == reverse("chat:conversation", args=[conversation_id])
    context = {"entry": conversation, "is_shown": is_shown, "is_fresh": True}
    return render(request, "chat/_conversation_entry.html", context)


def _shown_path(request: HttpRequest) -> str:
    """The address of the page that htmx asks from, without its query; empty when the header holds no address."""
    try:
        shown = request.htmx.current_url_abs_path  # type: ignore[attr-defined]
    except ValueError:  # such as http://[bad, which Python refuses to split
        return ""
    return (shown or "").partition("?")[0]
