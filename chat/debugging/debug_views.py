"""Why the passages of an answer ranked where they did, and what judges say of it."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chat.conversations.rights import may_read_all
from chat.debugging.panel import panel_of
from chat.debugging.scores import scores_of
from chat.models import Answer
from chat.pages.access import explainable_answer, for_visitors, known_visitor
from chat.streaming.asking import answers_readable_by

# Scores that are still to come are asked for again after so many seconds; each round waits longer, and the last one
# leaves it to the reader.
FIRST_WAIT_SECONDS = 2
LONGEST_WAIT_SECONDS = 20
MOST_ROUNDS = 40


@require_GET
@for_visitors
def debug(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """The panel: for htmx what goes into the page, for other browsers a page of its own."""
    answer = explainable_answer(request, answer_id)
    panel = panel_of(answer, request.user)
    context = {
        "answer": answer,
        "panel": panel,
        "earlier_answer": _repeated_answer(request, answer),
        **scores_context(request, answer),
    }
    template = "chat/_debug.html" if request.htmx else "chat/debug.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@require_GET
@for_visitors
def scores(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """The scores that judges have given by now; the fragment asks again while some are still to come."""
    answer = explainable_answer(request, answer_id)
    asked = request.GET.get("round", "")
    return render(
        request, "chat/_debug_scores.html", scores_context(request, answer, int(asked[:3]) if asked.isdecimal() else 0)
    )


def _repeated_answer(request: HttpRequest, answer: Answer) -> Answer | None:
    """The answer that this one repeats, where the caller may read it: it may have been given to somebody else."""
    if answer.repeats_id is None:
        return None
    return answers_readable_by(request.user, known_visitor(request)).filter(pk=answer.repeats_id).first()


def scores_context(request: HttpRequest, answer: Answer, asked_before: int = 0) -> dict[str, Any]:
    scores = scores_of(answer)
    pending = any(score.pending for score in scores)
    return {
        "answer": answer,
        "scores": scores,
        "is_staff": may_read_all(request.user),
        "pending": pending,
        "asks_again": pending and asked_before < MOST_ROUNDS,
        "next_round": asked_before + 1,
        "wait_seconds": min(FIRST_WAIT_SECONDS + asked_before, LONGEST_WAIT_SECONDS),
    }
