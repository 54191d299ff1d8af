from __future__ import annotations

import uuid

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from chat.conversations import sharing
from chat.conversations.following import follow_answer, may_be_mailed, may_follow_answer, unfollow_answers
from chat.conversations.rights import list_own_answers
from chat.models import Answer
from chat.pages.access import admit_visitors
from chat.pages.changes import find_changes
from core.users import get_account


@require_POST
@admit_visitors
def follow_own_answer(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    answer = get_object_or_404(list_own_answers(request).select_related("conversation"), pk=answer_id)
    page = reverse("chat:conversation", args=[answer.conversation_id])
    return _change_following(request, answer, f"{page}#answer-{answer.pk}", answer.pk)


@require_POST
@admit_visitors
def follow_shared_answer(request: HttpRequest, token: uuid.UUID, turn_id: uuid.UUID) -> HttpResponse:
    """Let the user follow an answer of a shared conversation. ``turn_id`` is its id on the shared page."""
    conversation = sharing.find_shared_conversation(token, request.user)
    answers = conversation.answers.select_related("conversation") if conversation is not None else Answer.objects.none()
    answer = next((each for each in answers if uuid.uuid5(token, str(each.pk)) == turn_id), None)
    if answer is None:
        raise Http404
    return _change_following(request, answer, f"{reverse('chat:shared', args=[token])}#answer-{turn_id}", turn_id)


def _change_following(request: HttpRequest, answer: Answer, page: str, turn_id: uuid.UUID) -> HttpResponse:
    if not may_be_mailed(request.user) or not may_follow_answer(request.user, answer):
        raise Http404
    if request.POST.get("follow") == "yes":
        seen = {change.key for change in find_changes(answer.citations.all()).values()}
        followed = follow_answer(get_account(request), answer, request.build_absolute_uri(page), seen)
        is_followed = followed is not None
        said = _("You get a mail when a passage changes.") if is_followed else _("You follow too many answers already.")
    else:
        unfollow_answers(request.user, answer=answer)
        is_followed, said = False, _("You no longer follow this answer.")
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(page)
    turn = {"id": turn_id, "followed": is_followed}
    response = render(request, "chat/_follow.html", {"turn": turn})
    return trigger_client_event(response, "announce", {"sentence": said})


@require_POST
@login_required
def end_following(request: HttpRequest, followed_id: int) -> HttpResponse:
    unfollow_answers(request.user, pk=followed_id)
    return redirect("account_overview")
