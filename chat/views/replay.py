"""An answer's search with one setting changed."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat.api.throttling import QuestionThrottle
from chat.conversations.rights import may_read_all
from chat.debugging.reach import filters_of_both
from chat.debugging.replay.form import ReplayForm
from chat.debugging.replay.searching import Baseline, baseline_of, replay, writers
from chat.debugging.trace import read_trace
from chat.models import Answer
from chat.views.access import explainable_answer, for_visitors
from retrieval.exceptions import InvalidQuery
from retrieval.types import QueryClass


@require_http_methods(["GET", "HEAD", "POST"])
@for_visitors
def replay_answer(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """The form, and behind a POST of it the difference: for htmx the result alone, for other browsers a page."""
    answer = explainable_answer(request, answer_id)
    if not answer.trace:
        raise Http404
    baseline = baseline_of(answer)
    if request.method != "POST":
        return _page(request, answer, baseline, form_for(answer, baseline))
    form = form_for(answer, baseline, request.POST)
    if not form.is_valid():
        return _page(request, answer, baseline, form, status=422)
    throttle = QuestionThrottle()
    if not throttle.allow_request(request, replay_answer):
        wait = _("Too many questions at once. Please try again in %(seconds)d seconds.")
        return _page(request, answer, baseline, form, wait % {"seconds": round(throttle.wait() or 1)}, status=429)
    try:
        filters = filters_of_both(answer, request.user)
    except InvalidQuery as error:
        return _page(request, answer, baseline, form, str(error), status=422)
    if not filters.collections:
        refused = _("You may not search the documents of this answer any more, so it cannot be searched again.")
        return _page(request, answer, baseline, form, refused, status=422)
    writer = writers().get(form.cleaned_data["writer"])
    done = replay(answer, form.changed_settings, filters, baseline=baseline.profile, writer=writer)
    return _page(request, answer, baseline, form, replayed=done)


def form_for(answer: Answer, baseline: Baseline | None = None, data: Any = None) -> ReplayForm:
    baseline = baseline or baseline_of(answer)
    trace = read_trace(answer.trace)
    query_class = trace.query_class if trace else QueryClass.DEFAULT
    return ReplayForm(data, baseline=baseline.profile.settings, query_class=query_class, prefix=f"replay-{answer.pk}")


def _page(
    request: HttpRequest,
    answer: Answer,
    baseline: Baseline,
    form: ReplayForm,
    error: str = "",
    *,
    replayed: Any = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "answer": answer,
        "baseline": baseline,
        "form": form,
        "error": error,
        "replay": replayed,
        "is_staff": may_read_all(request.user),
    }
    template = "chat/_replay_result.html" if request.htmx else "chat/replay.html"  # type: ignore[attr-defined]
    return render(request, template, context, status=status)
