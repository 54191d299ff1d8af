"""Why the passages of an answer ranked where they did."""

from __future__ import annotations

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chat.debugging import explained
from chat.views.access import for_visitors, is_staff, may_debug, readable_answer
from retrieval.explanation import without_errors
from retrieval.reranking import with_word_matches


@require_GET
@for_visitors
def debug(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """Why the passages of an answer ranked where they did."""
    if not may_debug(request):
        raise Http404
    answer = readable_answer(request, answer_id)
    trace = with_word_matches(answer.trace if is_staff(request) else without_errors(answer.trace))
    return render(request, "chat/_debug.html", {"answer": answer, "explained": explained(trace, answer.timings_ms)})
