"""What the asker thinks of an answer."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST
from django_htmx.http import trigger_client_event

from chat.forms import FeedbackForm
from chat.models import Answer, Feedback
from chat.turns import turn_of
from chat.views.access import for_visitors, own_answer


@require_POST
@for_visitors
def feedback(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """Keeps a verdict, its reason, or that it was taken back. A bad one is followed by the question what was wrong."""
    answer = own_answer(request, answer_id)
    form = FeedbackForm(request.POST)
    error = "" if form.is_valid() else " ".join(str(sentence) for found in form.errors.values() for sentence in found)
    said = "" if error else _keep(answer, form)
    unfolded = bool(error) or (form.cleaned_data["helpful"] is False and not form.cleaned_data["has_details"])
    if not request.htmx:  # type: ignore[attr-defined]
        address = reverse("chat:conversation", args=[answer.conversation_id])
        return redirect(f"{address}{f'?unfold={answer.pk}' if unfolded else ''}#answer-{answer.pk}-feedback")
    context = {"turn": turn_of(answer, unfolded=unfolded), "feedback_error": error}
    response = render(request, "chat/_feedback.html", context, status=422 if error else 200)
    return trigger_client_event(response, "announce", {"sentence": error or said})


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
