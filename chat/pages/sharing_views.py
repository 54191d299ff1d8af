"""Giving a conversation a link, and reading one that somebody shared."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import trigger_client_event

from chat.conversations import sharing
from chat.models import Answer, Conversation
from chat.pages.access import for_visitors, is_own, own_conversation
from chat.pages.forms import ShareForm
from chat.pages.page_views import saved_answers
from chat.pages.turns import build_turn, build_withheld_turn


@require_POST
@for_visitors
def share(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    """Make a link to what the form says, for whom it says; 422 for what it does not offer."""
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
    """A shared conversation, to read only. Answers from documents that the reader may not read are left out."""
    conversation = sharing.shared_conversation(token, request.user)
    if conversation is None:
        response = render(request, "chat/not_shared.html", status=404)
    else:
        # What was said before may be told again by what is shared: all answers are looked at.
        answers = list(saved_answers(conversation))
        withheld = sharing.withheld_from(request.user, answers)
        answers = [answer for answer in answers if sharing.is_shared(conversation, answer)]
        turns = [
            # Under other ids: those of a program without an account let whoever knows them act.
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
            "heading": _heading(conversation, answers, withheld),
            "turns": turns,
            "is_own": is_own(request, conversation),
        }
        response = render(request, "chat/shared.html", context)
    # The link is for those it was given to.
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _heading(conversation: Conversation, answers: Sequence[Answer], withheld: Collection[uuid.UUID]) -> str:
    """The conversation's title, which may be one of its questions; not where one of them is hidden."""
    if any(answer.pk in withheld for answer in answers):
        return _("Shared conversation")
    if conversation.share_scope == Conversation.ShareScope.ANSWER:
        return answers[0].question if answers else _("Shared conversation")
    return str(conversation)
