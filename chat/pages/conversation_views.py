"""Views of conversations and feedback."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event

from chat.conversations import sharing
from chat.conversations.rights import is_own, own_answers
from chat.models import Answer, Conversation, Feedback
from chat.pages.access import for_visitors, own_conversation
from chat.pages.forms import FeedbackForm, ShareForm, TitleForm
from chat.pages.page_views import answers_before_branch, saved_answers, sidebar
from chat.pages.turns import build_turn, build_withheld_turn


@require_POST
@for_visitors
def feedback(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    answer = get_object_or_404(own_answers(request), pk=answer_id)
    form = FeedbackForm(request.POST)
    if not form.is_valid():
        return _refuse(request, answer, form)
    said = _keep(answer, form)
    settled = form.cleaned_data["has_details"]
    unfolded = form.cleaned_data["helpful"] is False and not settled
    if not request.htmx:  # type: ignore[attr-defined]
        address = reverse("chat:conversation", args=[answer.conversation_id])
        return redirect(f"{address}#answer-{answer.pk}-feedback")
    context = {"turn": build_turn(answer), "settled": settled, "unfolded": unfolded}
    return trigger_client_event(render(request, "chat/_feedback.html", context), "announce", {"sentence": said})


def _refuse(request: HttpRequest, answer: Answer, form: FeedbackForm) -> HttpResponse:
    error = " ".join(str(sentence) for found in form.errors.values() for sentence in found)
    if not request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(error, status=422, content_type="text/plain")
    rejected = {"reason": form.cleaned_data.get("reason", ""), "comment": request.POST.get("comment", "")}
    context = {"turn": replace(build_turn(answer), **rejected), "unfolded": True, "feedback_error": error}
    response = render(request, "chat/_feedback.html", context, status=422)
    return trigger_client_event(response, "announce", {"sentence": error})


def _keep(answer: Answer, form: FeedbackForm) -> str:
    given = form.cleaned_data
    if given["helpful"] is None:
        Feedback.objects.filter(answer=answer).delete()
        return _("Your judgement is taken back.")
    wanted = {name: given[name] for name in ("helpful", "reason", "comment")}
    Feedback.objects.update_or_create(answer=answer, defaults=wanted)
    return _("Thank you, your judgement is saved.")


@require_POST
@for_visitors
def share(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = own_conversation(request, conversation_id)
    form = ShareForm(conversation, request.POST)
    if not form.is_valid():
        return HttpResponse(_("Choose what is shared, and with whom."), status=422, content_type="text/plain")
    chosen = form.cleaned_data
    sharing.share(conversation, chosen["scope"], chosen["audience"], chosen["answer"])
    return _show(request, conversation, _("Shared. Copy the link."))


@require_POST
@for_visitors
def stop_sharing(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = own_conversation(request, conversation_id)
    sharing.stop_sharing(conversation)
    return _show(request, conversation, _("The conversation is not shared any more."))


def _show(request: HttpRequest, conversation: Conversation, said: str) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("chat:conversation", conversation.pk)
    response = render(request, "chat/_share.html", {"conversation": conversation, "unfolded": True})
    return trigger_client_event(response, "announce", {"sentence": said})


@require_GET
@for_visitors
def shared(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    conversation = sharing.shared_conversation(token, request.user)
    if conversation is None:
        response = render(request, "chat/not_shared.html", status=404)
    else:
        # A shared answer may repeat earlier ones.
        answers = list(saved_answers(conversation))
        withheld = sharing.withheld_from(request.user, [*answers_before_branch(conversation), *answers])
        answers = [answer for answer in answers if sharing.is_shared(conversation, answer)]
        turns = [
            # Other ids, because the id of an unowned answer lets any reader change it.
            replace(
                build_withheld_turn(answer, question=_("A question about documents that you may not read"))
                if answer.pk in withheld
                else build_turn(answer),
                id=uuid.uuid5(token, str(answer.pk)),
            )
            for answer in answers
        ]
        context = {
            "conversation": conversation,
            "heading": _choose_heading(conversation, answers, withheld),
            "turns": turns,
            "is_own": is_own(request, conversation),
        }
        response = render(request, "chat/shared.html", context)
    # Search engines must not index shared links.
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _choose_heading(conversation: Conversation, answers: Sequence[Answer], withheld: Collection[uuid.UUID]) -> str:
    """Return the title, which may be a hidden question."""
    if any(answer.pk in withheld for answer in answers):
        return _("Shared conversation")
    if conversation.share_scope == Conversation.ShareScope.ANSWER:
        return answers[0].question if answers else _("Shared conversation")
    return str(conversation)


@require_GET
@for_visitors
def conversations(request: HttpRequest) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(f"{reverse('chat:home')}?{urlencode({'q': request.GET.get('q', '')})}")
    context = sidebar(request, shown=_read_shown_address(request))
    response = render(request, "chat/_conversations.html", context)
    found = context["listing"]
    if not found.wanted:
        return response
    said = ngettext("%(count)d conversation", "%(count)d conversations", found.count) % {"count": found.count}
    return trigger_client_event(response, "announce", {"sentence": said})


@require_GET
@for_visitors
def conversation_entry(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return _render_entry(request, conversation_id)


@require_http_methods(["GET", "POST"])
@for_visitors
def rename_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = own_conversation(request, conversation_id)
    form = TitleForm(request.POST if request.method == "POST" else None, instance=conversation)
    if form.is_valid():
        conversation.save(update_fields=["title"])
        return trigger_client_event(_render_entry(request, conversation_id), "announce", {"sentence": _("Renamed.")})
    status = 422 if form.is_bound else 200
    return render(request, "chat/_conversation_rename.html", {"entry": conversation, "form": form}, status=status)


@require_POST
@for_visitors
def delete_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    own_conversation(request, conversation_id).delete()
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("chat:home")
    shown = _read_shown_address(request)
    if reverse("chat:conversation", args=[conversation_id]) in shown:
        return HttpResponseClientRedirect(reverse("chat:home"))
    response = render(request, "chat/_conversations.html", sidebar(request, shown=shown))
    return trigger_client_event(response, "announce", {"sentence": _("The conversation is deleted.")})


def _render_entry(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = own_conversation(request, conversation_id)
    is_shown = reverse("chat:conversation", args=[conversation_id]) in _read_shown_address(request)
    context = {"entry": conversation, "is_shown": is_shown, "is_fresh": True}
    return render(request, "chat/_conversation_entry.html", context)


def _read_shown_address(request: HttpRequest) -> str:
    return request.headers.get("HX-Current-URL", "")
