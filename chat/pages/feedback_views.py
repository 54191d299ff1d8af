from __future__ import annotations

import uuid
from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from chat.conversations.rights import list_own_answers
from chat.models import Answer, Feedback
from chat.pages.access import admit_visitors
from chat.pages.forms import FeedbackForm
from chat.pages.turns import build_turn


@require_POST
@admit_visitors
def feedback(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    answer = get_object_or_404(list_own_answers(request), pk=answer_id)
    form = FeedbackForm(request.POST)
    if not form.is_valid():
        return _refuse_feedback(request, answer, form)
    said = _keep_feedback(answer, form)
    settled = form.cleaned_data["has_details"]
    unfolded = form.cleaned_data["helpful"] is False and not settled
    if not request.htmx:  # type: ignore[attr-defined]
        address = reverse("chat:conversation", args=[answer.conversation_id])
        return redirect(f"{address}#answer-{answer.pk}-feedback")
    context = {"turn": build_turn(answer), "settled": settled, "unfolded": unfolded}
    return trigger_client_event(render(request, "chat/_feedback.html", context), "announce", {"sentence": said})


def _refuse_feedback(request: HttpRequest, answer: Answer, form: FeedbackForm) -> HttpResponse:
    error = " ".join(str(sentence) for found in form.errors.values() for sentence in found)
    if not request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(error, status=422, content_type="text/plain")
    rejected = {"reason": form.cleaned_data.get("reason", ""), "comment": request.POST.get("comment", "")}
    context = {"turn": replace(build_turn(answer), **rejected), "unfolded": True, "feedback_error": error}
    response = render(request, "chat/_feedback.html", context, status=422)
    return trigger_client_event(response, "announce", {"sentence": error})


def _keep_feedback(answer: Answer, form: FeedbackForm) -> str:
    given = form.cleaned_data
    if given["helpful"] is None:
        Feedback.objects.filter(answer=answer).delete()
        return _("Your opinion is taken back.")
    wanted = {name: given[name] for name in ("helpful", "reason", "comment")}
    Feedback.objects.update_or_create(answer=answer, defaults=wanted)
    return _("Thank you, your opinion is saved.")
