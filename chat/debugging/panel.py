"""All that the debug panel shows of one answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from chat.answer_trace import AnswerTrace, PromptTrace, read_trace
from chat.conversations.rights import is_closed_to, may_read_all
from chat.debugging.candidates import CandidateRow, Shown, candidate_rows, used_weights
from chat.debugging.context import context_in_words
from chat.debugging.documents_reached import filters_of_both
from chat.debugging.labels import stage_label
from chat.debugging.sentences import Sentence, sentences_of
from chat.debugging.snippets import snippet
from chat.debugging.steps import Step, steps_of
from chat.debugging.waterfall import Bar, answer_bars, search_bars
from chat.models import Answer
from chat.pages.cards import page_label, passage_url
from retrieval.exceptions import InvalidQuery, RetrieverFailed
from retrieval.models import Chunk, Document
from retrieval.search.matches import count_matches, matched_spans
from retrieval.search.passage_rows import load_passages

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Panel:
    """An answer, explained. ``lexical_matches`` is None when it was not counted: ``not_counted`` says why.

    ``profile_url`` leads to the search profile where the viewer may see it; empty where not.
    """

    answer: Answer
    trace: AnswerTrace
    steps: tuple[Step, ...]
    search_bars: tuple[tuple[str, Bar], ...]
    answer_bars: tuple[tuple[str, Bar], ...]
    weights: Mapping[str, float]
    context: tuple[str, ...]
    sentences: tuple[Sentence, ...]
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
    """The panel as ``viewer`` may see it: errors for those who may read all answers, passages of readable collections.

    Reads the passages as they are now; one that is gone shows the beginning that the trace has kept, one whose
    collection the viewer may not read any more none of its words. None when nothing was searched.
    """
    saved = read_trace(answer.trace)
    if saved is None:
        return None
    shown = _load_shown(saved, viewer)
    trace = saved if may_read_all(viewer) else saved.without_errors()
    trace = _open_part(trace, shown)
    trace = replace(trace, prompt=_open_calls(trace.prompt, viewer))
    matches, not_counted = _lexical_matches(answer, trace, viewer)
    sentences = sentences_of(answer)
    return Panel(
        answer=answer,
        trace=trace,
        steps=steps_of(answer, trace, sentences, matches),
        search_bars=_label(search_bars(trace.timings_ms)),
        answer_bars=_label(answer_bars(answer.timings_ms, trace.timings_ms.get("total"))),
        weights=used_weights(trace),
        context=context_in_words(trace.assembly),
        sentences=sentences,
        rows=candidate_rows(trace, shown),
        lexical_matches=matches,
        not_counted=not_counted,
        profile_url=_profile_url(answer, viewer),
    )


def _label(bars: tuple[Bar, ...]) -> tuple[tuple[str, Bar], ...]:
    return tuple((stage_label(bar.name), bar) for bar in bars)


def _lexical_matches(answer: Answer, trace: AnswerTrace, viewer: Any) -> tuple[int | None, str]:
    """How many passages match the words by now; None, with the reason, when they cannot be counted."""
    try:
        filters = filters_of_both(answer, viewer)
        if not filters.collections:
            return None, _("the documents of this answer may not be searched any more")
        return count_matches(trace.query, filters), ""
    except InvalidQuery as error:
        return None, str(error)
    except RetrieverFailed as error:
        logger.warning("The matches of answer %s could not be counted: %s", answer.pk, error)
        return None, str(error) if may_read_all(viewer) else ""


def _load_shown(trace: AnswerTrace, viewer: Any) -> dict[int, Shown]:
    """The candidates' passages around what matched in them; closed those of collections that the viewer may not read.

    One that is gone is missing, or closed, where the viewer may not read everything: nobody knows where it was.
    """
    terms = {candidate.chunk_id: candidate.matched_terms for candidate in trace.candidates}
    kept = set(Chunk.objects.filter(pk__in=terms).values_list("pk", flat=True))
    readable = Chunk.objects.filter(pk__in=terms, document__in=Document.objects.readable_by(viewer))
    closed = kept - set(readable.values_list("pk", flat=True))
    if is_closed_to(viewer) is not None:
        closed |= terms.keys() - kept
    passages = load_passages(kept - closed)
    spans = matched_spans({pk: passage.content for pk, passage in passages.items()}, terms)
    return dict.fromkeys(closed, Shown(is_closed=True)) | {
        pk: Shown(
            pieces=snippet(passage.content, spans.get(pk, ())),
            href=passage_url(passage.document_id, passage.start, passage.end),
            page=page_label(passage.page, passage.page_unit) if passage.page else "",
        )
        for pk, passage in passages.items()
    }


def _open_part(trace: AnswerTrace, shown: Mapping[int, Shown]) -> AnswerTrace:
    """The trace without the words of closed passages, and then without words that may be from one of them."""
    closed = {pk for pk, passage in shown.items() if passage.is_closed}
    if not closed:
        return trace
    return replace(
        trace,
        retrievers=tuple(replace(each, expansions={}) for each in trace.retrievers),
        candidates=tuple(
            replace(each, matched_terms=()) if each.chunk_id in closed else each for each in trace.candidates
        ),
        passages={pk: known for pk, known in trace.passages.items() if pk not in closed},
    )


def _open_calls(prompt: PromptTrace, viewer: Any) -> PromptTrace:
    """The prompt's trace without what a model was told of tables that the viewer may not read."""
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
