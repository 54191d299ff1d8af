from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.conversations.rights import build_unreadable_condition, list_readable_answers, may_read_all_answers
from chat.debugging.candidates import (
    CandidateRow,
    PassageWithSnippet,
    build_candidate_rows,
    find_used_retriever_weights,
    load_readable_passages,
)
from chat.debugging.checked_sentences import ShownSentence, describe_sentences
from chat.debugging.hits import HitRow, build_hit_rows
from chat.debugging.stages import StageBar, build_answer_bars, build_search_stage_bars
from chat.models import Answer
from chat.pages.access import admit_visitors, get_explainable_answer
from chat.pages.filters import build_filter_chips
from chat.signals import DisplayedScore, scores_wanted
from chat.types import AnswerTrace, PromptTrace, read_trace
from retrieval.curl_command import build_curl_command
from retrieval.exceptions import InvalidQuery, RetrieverFailed
from retrieval.models import Document
from retrieval.rights.search_filters import build_filters
from retrieval.search.ranking.lexical_ranker import count_matches

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DebugPanel:
    """The content of a debug panel.

    ``lexical_matches`` is the number of passages with a word of the question. If it is None, ``not_counted`` says why.
    """

    trace: AnswerTrace
    search_bars: tuple[StageBar, ...]
    answer_bars: tuple[StageBar, ...]
    weights: Mapping[str, float]
    sentences: tuple[ShownSentence, ...]
    rows: tuple[CandidateRow, ...]
    lexical_matches: int | None = None
    not_counted: str = ""
    profile_url: str = ""
    playground_url: str = ""
    results: tuple[HitRow, ...] = ()
    hides_words: bool = False

    @property
    def query_expansions(self) -> Mapping[str, tuple[str, ...]]:
        return {typed: meant for each in self.trace.retrievers for typed, meant in each.expansions.items()}

    @property
    def score_lead_of_first_hit(self) -> float | None:
        return self.results[0].score - self.results[1].score if len(self.results) > 1 else None

    @property
    def kept_candidate_count(self) -> int:
        return sum(row.candidate.rank is not None for row in self.rows)

    @property
    def dropped_candidate_count(self) -> int:
        return len(self.rows) - self.kept_candidate_count


def build_panel(answer: Answer, viewer: Any) -> DebugPanel | None:
    """Return the debug panel for an answer; None if the answer had no search.

    Passages that the viewer may not read are left out. Errors are shown only to users who may read all answers.
    """
    saved = read_trace(answer.trace)
    if saved is None:
        return None
    shown = load_readable_passages(saved.candidates, viewer)
    trace = saved if may_read_all_answers(viewer) else saved.copy_without_errors()
    is_limited = build_unreadable_condition(viewer) is not None
    if is_limited:
        trace = _hide_unreadable_words(trace, shown)
    trace = replace(trace, prompt=_hide_unreadable_call_results(trace.prompt, viewer))
    matches, not_counted = _count_lexical_matches(answer, trace, viewer)
    return DebugPanel(
        trace=trace,
        search_bars=build_search_stage_bars(trace.timings_ms),
        answer_bars=build_answer_bars(answer.timings_ms, trace.timings_ms.get("total")),
        weights=find_used_retriever_weights(trace),
        sentences=describe_sentences(answer),
        rows=build_candidate_rows(trace, shown),
        lexical_matches=matches,
        not_counted=not_counted,
        profile_url=_build_profile_url(answer, viewer),
        playground_url=_build_playground_url(trace.query, answer, viewer),
        results=build_hit_rows(answer, trace, shown if is_limited else None),
        hides_words=is_limited and any(each.chunk_id not in shown for each in trace.candidates),
    )


def _count_lexical_matches(answer: Answer, trace: AnswerTrace, viewer: Any) -> tuple[int | None, str]:
    """Return the number of passages that contain a word of the question, and a reason if this number is unknown.

    Only passages that both the asker and the viewer may read are counted. The number is None if counting is impossible.
    The reason is empty if the viewer may not read it.
    """
    try:
        asked, seen = answer.build_search_filters(), build_filters(viewer)
        both = tuple(pk for pk in asked.collections if pk in seen.collections)
        if not both:
            return None, _("the documents of this answer may not be searched any more")
        readers = (*asked.readers, *seen.readers)
        return count_matches(trace.query, replace(asked, collections=both, readers=readers)), ""
    except InvalidQuery as error:
        return None, str(error)
    except RetrieverFailed as error:
        logger.warning("The matches of answer %s could not be counted: %s", answer.pk, error)
        return None, str(error) if may_read_all_answers(viewer) else ""


def _hide_unreadable_words(trace: AnswerTrace, shown: Mapping[int, PassageWithSnippet]) -> AnswerTrace:
    if all(each.chunk_id in shown for each in trace.candidates):
        return trace
    return replace(
        trace,
        retrievers=tuple(replace(each, expansions={}) for each in trace.retrievers),
        candidates=tuple(
            each if each.chunk_id in shown else replace(each, matched_terms=()) for each in trace.candidates
        ),
    )


def _hide_unreadable_call_results(prompt: PromptTrace, viewer: Any) -> PromptTrace:
    asked = {call.document_id for call in prompt.calls if call.document_id is not None}
    readable = set(Document.objects.filter(pk__in=asked).readable_by(viewer).values_list("pk", flat=True))
    closed = asked - readable
    calls = (replace(call, told="") if call.document_id in closed else call for call in prompt.calls)
    return replace(prompt, calls=tuple(calls))


def _build_profile_url(answer: Answer, viewer: Any) -> str:
    version = answer.profile_version
    if version is None or not viewer.is_staff or not viewer.has_perm("retrieval.view_searchprofile"):
        return ""
    return reverse("admin:retrieval_searchprofile_change", args=[version.profile_id])


def _build_playground_url(query: str, answer: Answer, viewer: Any) -> str:
    if not viewer.is_staff or not viewer.has_perm("retrieval.view_searchprofile"):
        return ""
    collection = answer.collection.slug if answer.collection else ""
    parameters = {"question": query, "collection": collection, "answer": str(answer.pk)}
    return f"{reverse('admin:retrieval_searchprofile_playground')}?{urlencode(parameters)}"


def _write_curl(request: HttpRequest, answer: Answer, panel: DebugPanel | None) -> tuple[str, str]:
    if panel is None:
        return "", ""
    trace, notes = panel.trace, []
    filters: dict[str, Any] = dict(answer.asked_filters)
    # The filters of the answer can contain values from documents that the viewer may not read.
    if build_unreadable_condition(request.user) is not None and not all(
        c.token for c in build_filter_chips(answer, request.user)
    ):
        filters = {}
        notes.append(_("The filters of the question are left out: they are not shown to you."))
    collection = answer.collection if answer.document is None else answer.document.collection
    if answer.document is not None:
        members = Document.objects.filter(pk__in=answer.document.list_own_and_member_ids()).readable_by(request.user)
        filters["documents"] = sorted(members.values_list("pk", flat=True))
    if trace.joined_query:
        notes.append(
            _("The answer searched the question alone and joined with those before it; this searches the latter.")
        )
    command = build_curl_command(
        request,
        trace.joined_query or trace.query,
        collection=collection.slug if collection else "",
        method=answer.method,
        top_k=trace.top_k,
        filters=filters,
    )
    return command, " ".join(notes)


@require_GET
@admit_visitors
def show_debug_panel(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    answer = get_explainable_answer(request, answer_id)
    panel = build_panel(answer, request.user)
    command, note = _write_curl(request, answer, panel)
    context = {
        "panel": panel,
        "curl": command,
        "curl_note": note,
        "earlier_answer": list_readable_answers(request).filter(pk=answer.repeats_id).first()
        if answer.repeats_id
        else None,
        **_build_scores_context(request, answer),
    }
    template = "chat/_debug.html" if request.htmx else "chat/debug.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@require_GET
@admit_visitors
def show_debug_scores(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    answer = get_explainable_answer(request, answer_id)
    return render(request, "chat/_debug_scores.html", _build_scores_context(request, answer))


def _build_scores_context(request: HttpRequest, answer: Answer) -> dict[str, object]:
    """Return the judges' scores of the answer.

    The receivers of the signal `scores_wanted` supply them. If a receiver fails, a row shows its error.
    """
    scores: list[DisplayedScore] = []
    for _receiver, found in scores_wanted.send_robust(Answer, answer=answer):
        if isinstance(found, Exception):
            found = [DisplayedScore(_("scores"), error=f"{type(found).__name__}: {found}")]
        scores += found
    return {
        "answer": answer,
        "scores": scores,
        "is_staff": may_read_all_answers(request.user),
        "is_pending": any(score.pending for score in scores),
    }
