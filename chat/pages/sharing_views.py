from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from chat.conversations import sharing
from chat.conversations.following import find_followed_answer_ids
from chat.conversations.rights import is_own
from chat.models import Answer, Conversation
from chat.pages.access import admit_visitors, get_own_conversation
from chat.pages.forms import ShareForm
from chat.pages.page_views import find_changes_of_answers, is_followed, list_answers_before_branch, list_saved_answers
from chat.pages.turns import ShownTurn, build_turn, build_withheld_turn
from core.user_types import AnyUser


@require_POST
@admit_visitors
def share(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = get_own_conversation(request, conversation_id)
    form = ShareForm(conversation, request.POST)
    if not form.is_valid():
        return HttpResponse(_("Choose what is shared, and with whom."), status=422, content_type="text/plain")
    chosen = form.cleaned_data
    sharing.share_conversation(conversation, chosen["scope"], chosen["audience"], chosen["answer"])
    return _render_sharing_form(request, conversation, _("Shared. Copy the link."))


@require_POST
@admit_visitors
def stop_sharing(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    conversation = get_own_conversation(request, conversation_id)
    sharing.stop_sharing(conversation)
    return _render_sharing_form(request, conversation, _("The conversation is not shared any more."))


def _render_sharing_form(request: HttpRequest, conversation: Conversation, said: str) -> HttpResponse:
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("chat:conversation", conversation.pk)
    response = render(request, "chat/_share.html", {"conversation": conversation, "unfolded": True})
    return trigger_client_event(response, "announce", {"sentence": said})


@require_safe
@admit_visitors
def show_shared_conversation(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    conversation = sharing.find_shared_conversation(token, request.user)
    if conversation is None:
        response = render(request, "chat/not_shared.html", status=404)
    else:
        turns, heading = load_shared_turns(conversation, token, request.user)
        context = {
            "conversation": conversation,
            "heading": heading,
            "turns": turns,
            "is_own": is_own(request, conversation),
        }
        response = render(request, "chat/shared.html", context)
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def load_shared_turns(conversation: Conversation, token: uuid.UUID, user: AnyUser) -> tuple[list[ShownTurn], str]:
    # A shared answer may repeat an earlier one, so the rights to all answers of the conversation are checked.
    answers = list(list_saved_answers(conversation))
    withheld = sharing.find_withheld_shared_answers(user, [*list_answers_before_branch(conversation), *answers])
    answers = [answer for answer in answers if sharing.is_shared(conversation, answer)]
    changes = find_changes_of_answers(answers, withheld)
    followed = find_followed_answer_ids(user, answers)
    turns = [
        # The page gets no database ids, because a reader could use them to change answers that have no owner.
        replace(
            build_withheld_turn(answer, question=_("A question about documents that you may not read"))
            if answer.pk in withheld
            else build_turn(answer, viewer=user, changes=changes, followed=is_followed(answer, followed)),
            id=uuid.uuid5(token, str(answer.pk)),
        )
        for answer in answers
    ]
    return turns, _choose_heading(conversation, answers, withheld)


def _choose_heading(conversation: Conversation, answers: Sequence[Answer], withheld: Collection[uuid.UUID]) -> str:
    if any(answer.pk in withheld for answer in answers):
        return _("Shared conversation")
    if conversation.share_scope == Conversation.ShareScope.ANSWER:
        return answers[0].question if answers else _("Shared conversation")
    return str(conversation)
