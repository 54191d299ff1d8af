"""What the asker thinks of an answer."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from chat.models import Answer, Feedback
from chat.pages.access import for_visitors, may_debug, own_answer, own_conversation
from chat.pages.forms import FeedbackForm
from chat.pages.page_views import page
from chat.pages.turns import build_turn, with_refused_feedback


@require_POST
@for_visitors
def feedback(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """Keeps a verdict, its reason, or that it was taken back. A bad one is followed by the question what was wrong."""
    answer = own_answer(request, answer_id)
    form = FeedbackForm(request.POST)
    if not form.is_valid():
        return _refuse(request, answer, form)
    said = _keep(answer, form)
    settled = form.cleaned_data["has_details"]
    unfolded = form.cleaned_data["helpful"] is False and not settled
    if not request.htmx:  # type: ignore[attr-defined]
        address = reverse("chat:conversation", args=[answer.conversation_id])
        return redirect(f"{address}{f'?unfold={answer.pk}' if unfolded else ''}#answer-{answer.pk}-feedback")
    context = {"turn": build_turn(answer, unfolded=unfolded), "settled": settled}
    return trigger_client_event(render(request, "chat/_feedback.html", context), "announce", {"sentence": said})


def _refuse(request: HttpRequest, answer: Answer, form: FeedbackForm) -> HttpResponse:
    """The form with what was sent and what is wrong with it: for htmx alone, for other browsers in the whole page."""
    error = " ".join(str(sentence) for found in form.errors.values() for sentence in found)
    reason = form.cleaned_data.get("reason", "")
    turn = with_refused_feedback(
        build_turn(answer, debug=may_debug(request)), error, reason=reason, comment=request.POST.get("comment", "")
    )
    if not request.htmx:  # type: ignore[attr-defined]
        return page(request, own_conversation(request, answer.conversation_id), status=422, refused_feedback=turn)
    response = render(request, "chat/_feedback.html", {"turn": turn}, status=422)
    return trigger_client_event(response, "announce", {"sentence": error})


def _keep(answer: Answer, form: FeedbackForm) -> str:
    """What to say of it."""
    given = form.cleaned_data
    if given["helpful"] is None:
        Feedback.objects.filter(answer=answer).delete()
        said = _("Your judgement is taken back.")
    else:
        wanted = {name: given[name] for name in ("helpful", "reason", "comment")}
        Feedback.objects.update_or_create(answer=answer, defaults=wanted)
        said = _("Thank you, your judgement is saved.")
    return said
