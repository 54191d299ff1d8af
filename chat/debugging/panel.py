"""All that the debug panel shows of one answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from chat.conversations.rights import may_read_all
from chat.debugging.candidates import CandidateRow, Shown, candidate_rows, used_weights
from chat.debugging.context import context_in_words
from chat.debugging.diagram import Diagram, Step, narrow, wide
from chat.debugging.labels import stage_label
from chat.debugging.reach import filters_of_both
from chat.debugging.sentences import Sentence, sentences_of
from chat.debugging.snippets import snippet
from chat.debugging.steps import steps_of
from chat.debugging.trace import AnswerTrace, read_trace
from chat.debugging.waterfall import Bar, answer_bars, search_bars
from chat.models import Answer
from chat.pages.cards import passage_url
from retrieval.access import filters_for
from retrieval.exceptions import InvalidQuery, RetrieverFailed
from retrieval.lexical.matches import count_matches, matched_spans
from retrieval.models import Chunk
from retrieval.search.passages import load_passages
from retrieval.search.reranking import with_word_matches

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Panel:
    """An answer, explained. ``lexical_matches`` is None when it was not counted: ``not_counted`` says why.

    ``profile_url`` leads to the search profile where the viewer may see it; empty where not.
    """

    answer: Answer
    trace: AnswerTrace
    steps: tuple[Step, ...]
    diagrams: tuple[Diagram, ...]
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
    trace = with_word_matches(saved if may_read_all(viewer) else saved.without_errors())
    matches, not_counted = _lexical_matches(answer, trace, viewer)
    sentences = sentences_of(answer)
    steps = steps_of(answer, trace, sentences, matches)
    return Panel(
        answer=answer,
        trace=trace,
        steps=steps,
        diagrams=(wide(steps), narrow(steps)),
        search_bars=_labelled(search_bars(trace.timings_ms)),
        answer_bars=_labelled(answer_bars(answer.timings_ms, trace.timings_ms.get("total"))),
        weights=used_weights(trace),
        context=context_in_words(trace.assembly),
        sentences=sentences,
        rows=candidate_rows(trace, _shown(trace, viewer)),
        lexical_matches=matches,
        not_counted=not_counted,
        profile_url=_profile_url(answer, viewer),
    )


def _labelled(bars: tuple[Bar, ...]) -> tuple[tuple[str, Bar], ...]:
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


def _shown(trace: AnswerTrace, viewer: Any) -> dict[int, Shown]:
    """The candidates' passages around what matched in them; closed those of collections that the viewer may not read.

    One that is gone is missing.
    """
    terms = {candidate.chunk_id: candidate.matched_terms for candidate in trace.candidates}
    readable = set(filters_for(viewer).collections)
    kept_in = dict(Chunk.objects.filter(pk__in=terms).values_list("pk", "collection"))
    closed = [pk for pk, collection in kept_in.items() if collection not in readable]
    passages = load_passages(kept_in.keys() - closed)
    spans = matched_spans({pk: passage.content for pk, passage in passages.items()}, terms)
    return dict.fromkeys(closed, Shown(is_closed=True)) | {
        pk: Shown(
            pieces=snippet(passage.content, spans.get(pk, ())),
            href=passage_url(passage.document_id, passage.start, passage.end),
            page=passage.page,
        )
        for pk, passage in passages.items()
    }


def _profile_url(answer: Answer, viewer: Any) -> str:
    version = answer.profile_version
    if version is None or not viewer.is_staff or not viewer.has_perm("retrieval.view_searchprofile"):
        return ""
    return reverse("admin:retrieval_searchprofile_change", args=[version.profile_id])
