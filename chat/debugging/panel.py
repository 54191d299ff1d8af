"""The debug panel: why the passages of an answer ranked where they did, when each stage ran, and the judges' scores."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.conversations.reach import readable_answers
from chat.conversations.rights import is_closed_to, may_read_all
from chat.debugging.candidates import (
    CandidateRow,
    ShownPassage,
    candidate_rows,
    sentences_of,
    snippet,
    stage_label,
    used_weights,
)
from chat.models import Answer
from chat.pages.page_views import explainable_answer, for_visitors
from chat.signals import PanelScore, scores_wanted
from chat.streaming.asking import filters_of
from chat.types import AnswerTrace, PromptTrace, read_trace
from retrieval.exceptions import InvalidQuery, RetrieverFailed
from retrieval.models import Chunk, Document
from retrieval.rights import filters_for
from retrieval.search.lexical_ranker import count_matches, matched_spans
from retrieval.search.passage_rows import load_passages

logger = logging.getLogger(__name__)

# When each stage of an answer began and how long it took. Durations are measured; the beginnings follow from the order
# of the work: the stages of a search come one after the other, and `legs` is the time of both retrievers.

_SEARCH = ("reformulate", "classify", "legs", "scores", "fuse", "rerank", "load")
_AT_ONCE = ("vector", "lexical")


@dataclass(frozen=True, slots=True)
class Bar:
    """A stage: ``left`` and ``width`` in percent of the whole."""

    name: str
    start_ms: float
    milliseconds: float
    whole_ms: float
    nested: bool = False

    @property
    def label(self) -> str:
        return stage_label(self.name)

    @property
    def left(self) -> float:
        return round(min(100.0, 100 * self.start_ms / self.whole_ms), 2)

    @property
    def width(self) -> float:
        return round(min(100.0 - self.left, 100 * self.milliseconds / self.whole_ms), 2)


def search_bars(timings_ms: Mapping[str, float]) -> tuple[Bar, ...]:
    """The stages of a search from its timings, in the order of the work; empty without timings."""
    stages = [stage for stage in _SEARCH if stage in timings_ms]
    whole = max(timings_ms.get("total", 0.0), sum(timings_ms[stage] for stage in stages)) or 1.0
    bars = []
    at = 0.0
    for stage in stages:
        bars.append(Bar(stage, at, timings_ms[stage], whole))
        if stage == "legs":
            bars += [Bar(each, at, timings_ms[each], whole, nested=True) for each in _AT_ONCE if timings_ms.get(each)]
        at += timings_ms[stage]
    return tuple(bars)


def answer_bars(timings_ms: Mapping[str, float], search_ms: float | None = None) -> tuple[Bar, ...]:
    """The stages of an answer: search, context, wait, write, check; those that its timings do not show are left out.

    ``timings_ms`` are moments since its beginning: `searched`, `first_token`, `written` and `total`. Of what passed
    before `searched`, ``search_ms`` was the search.
    """
    total, searched = timings_ms.get("total"), timings_ms.get("searched")
    if not total:
        return ()
    last = "check" if "written" in timings_ms else "answer" if searched is None else "decide"
    # Each stage with the moment at which it ends.
    ends = {
        "search": searched if searched is None or search_ms is None else min(search_ms, searched),
        "context": searched,
        "wait": timings_ms.get("first_token"),
        "write": timings_ms.get("written"),
        last: total,
    }
    bars: list[Bar] = []
    at = 0.0
    for stage, end in ends.items():
        if end is not None and end > at:
            bars.append(Bar(stage, at, end - at, total))
            at = end
    return tuple(bars)


# All that the debug panel shows of one answer.


@dataclass(frozen=True, slots=True)
class Panel:
    """An answer, explained. ``lexical_matches`` is None if it was not counted; ``not_counted`` then has the reason.

    ``profile_url`` is the search profile's page if the viewer may see it; else empty.
    """

    trace: AnswerTrace
    search_bars: tuple[Bar, ...]
    answer_bars: tuple[Bar, ...]
    weights: Mapping[str, float]
    sentences: tuple[dict[str, Any], ...]
    rows: tuple[CandidateRow, ...]
    lexical_matches: int | None = None
    not_counted: str = ""
    profile_url: str = ""

    @property
    def kept(self) -> int:
        return sum(row.candidate.rank is not None for row in self.rows)

    @property
    def dropped(self) -> int:
        return len(self.rows) - self.kept


def panel_of(answer: Answer, viewer: Any) -> Panel | None:
    """The panel as ``viewer`` may see it: errors for users who may read all answers, and the passages that may be read,
    as they are now. None if nothing was searched.
    """
    saved = read_trace(answer.trace)
    if saved is None:
        return None
    shown = _load_shown(saved, viewer)
    trace = saved if may_read_all(viewer) else saved.without_errors()
    if is_closed_to(viewer) is not None:
        trace = _open_part(trace, shown)
    trace = replace(trace, prompt=_open_calls(trace.prompt, viewer))
    matches, not_counted = _lexical_matches(answer, trace, viewer)
    return Panel(
        trace=trace,
        search_bars=search_bars(trace.timings_ms),
        answer_bars=answer_bars(answer.timings_ms, trace.timings_ms.get("total")),
        weights=used_weights(trace),
        sentences=sentences_of(answer),
        rows=candidate_rows(trace, shown),
        lexical_matches=matches,
        not_counted=not_counted,
        profile_url=_profile_url(answer, viewer),
    )


def _lexical_matches(answer: Answer, trace: AnswerTrace, viewer: Any) -> tuple[int | None, str]:
    """How many passages match the words now, of those that both the asker and the viewer may read; None, with the
    reason, if they cannot be counted.
    """
    try:
        asked, seen = filters_of(answer), filters_for(viewer)
        both = tuple(pk for pk in asked.collections if pk in seen.collections)
        if not both:
            return None, _("the documents of this answer may not be searched any more")
        readers = (*asked.readers, *seen.readers)
        return count_matches(trace.query, replace(asked, collections=both, readers=readers)), ""
    except InvalidQuery as error:
        return None, str(error)
    except RetrieverFailed as error:
        logger.warning("The matches of answer %s could not be counted: %s", answer.pk, error)
        return None, str(error) if may_read_all(viewer) else ""


def _load_shown(trace: AnswerTrace, viewer: Any) -> dict[int, ShownPassage]:
    """The candidates' passages that the viewer may read."""
    terms = {candidate.chunk_id: candidate.matched_terms for candidate in trace.candidates}
    readable = Chunk.objects.filter(pk__in=terms, document__in=Document.objects.readable_by(viewer))
    passages = load_passages(readable.values_list("pk", flat=True))
    spans = matched_spans({pk: passage.content for pk, passage in passages.items()}, terms)
    return {pk: ShownPassage(passage, snippet(passage.content, spans.get(pk, ()))) for pk, passage in passages.items()}


def _open_part(trace: AnswerTrace, shown: Mapping[int, ShownPassage]) -> AnswerTrace:
    """The trace without the words of passages that are not shown, and without words that may come from one of them."""
    if all(each.chunk_id in shown for each in trace.candidates):
        return trace
    return replace(
        trace,
        retrievers=tuple(replace(each, expansions={}) for each in trace.retrievers),
        candidates=tuple(
            each if each.chunk_id in shown else replace(each, matched_terms=()) for each in trace.candidates
        ),
    )


def _open_calls(prompt: PromptTrace, viewer: Any) -> PromptTrace:
    """The prompt's trace without the results of tables that the viewer may not read."""
    asked = {call.document_id for call in prompt.calls if call.document_id is not None}
    readable = set(Document.objects.filter(pk__in=asked).readable_by(viewer).values_list("pk", flat=True))
    closed = asked - readable
    calls = (replace(call, told="") if call.document_id in closed else call for call in prompt.calls)
    return replace(prompt, calls=tuple(calls))


def _profile_url(answer: Answer, viewer: Any) -> str:
    version = answer.profile_version
    if version is None or not viewer.is_staff or not viewer.has_perm("retrieval.view_searchprofile"):
        return ""
    return reverse("admin:retrieval_searchprofile_change", args=[version.profile_id])


@require_GET
@for_visitors
def debug(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """The panel: a fragment for htmx, a whole page for other browsers."""
    answer = explainable_answer(request, answer_id)
    context = {
        "panel": panel_of(answer, request.user),
        # Somebody else may have asked for it.
        "earlier_answer": readable_answers(request).filter(pk=answer.repeats_id).first() if answer.repeats_id else None,
        **_scores_context(request, answer),
    }
    template = "chat/_debug.html" if request.htmx else "chat/debug.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@require_GET
@for_visitors
def scores(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """The judges' scores so far; the fragment asks again while some are pending."""
    answer = explainable_answer(request, answer_id)
    return render(request, "chat/_debug_scores.html", _scores_context(request, answer))


def _scores_context(request: HttpRequest, answer: Answer) -> dict[str, Any]:
    """The scores from all receivers. One that fails is logged and gets a row that says so."""
    scores: list[PanelScore] = []
    for _receiver, found in scores_wanted.send_robust(Answer, answer=answer):
        if isinstance(found, Exception):
            found = [PanelScore(_("scores"), error=f"{type(found).__name__}: {found}")]
        scores += found
    return {
        "answer": answer,
        "scores": scores,
        "is_staff": may_read_all(request.user),
        "is_pending": any(score.pending for score in scores),
    }
