"""The debug panel: why the passages of an answer ranked where they did, when each stage ran, and the judges' scores."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from chat.answering.extractive import NAME as EXTRACTIVE
from chat.conversations.reach import readable_answers
from chat.conversations.rights import is_closed_to, may_read_all
from chat.models import Answer
from chat.pages.cards import page_label, place, plain
from chat.pages.page_views import explainable_answer, for_visitors
from chat.pages.rendering import reason_label
from chat.signals import PanelScore, scores_wanted
from chat.streaming.asking import filters_of
from chat.types import AnswerTrace, PromptTrace, read_trace
from retrieval.exceptions import InvalidQuery, RetrieverFailed
from retrieval.models import Chunk, Document
from retrieval.passage_address import passage_url
from retrieval.rights import filters_for
from retrieval.search.lexical_ranker import count_matches, matched_spans
from retrieval.search.passage_rows import load_passages
from retrieval.search.trace import SearchTrace
from retrieval.types import Candidate, Passage, Retriever, RetrieverScore

logger = logging.getLogger(__name__)

# The words of a passage around what a search found in it.

FRAGMENT_CHARACTERS = 300
# So much is shown in front of the first match.
LEAD_CHARACTERS = 40


def snippet(text: str, spans: Iterable[tuple[int, int]] = ()) -> SafeString:
    """HTML of the text around the first matching span, or of its beginning; matches are marked.

    ``spans`` are offsets ``[start, end)`` in the text in any order. "…" replaces text left out. Empty for an empty
    text.
    """
    matches = sorted(span for span in spans if 0 <= span[0] < span[1] <= len(text))
    start = max(0, matches[0][0] - LEAD_CHARACTERS) if matches else 0
    if start:
        start = text.find(" ", start, matches[0][0]) + 1 or start
    end = start + FRAGMENT_CHARACTERS
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + FRAGMENT_CHARACTERS // 2)
    pieces, at = ["… " if text[:start].strip() else ""], start
    for first, last in matches:
        if at <= first < end:
            pieces += [text[at:first], format_html("<mark>{}</mark>", text[first : min(last, end)])]
            at = min(last, end)
    pieces += [text[at:end], " …" if text[end:].strip() else ""]
    return format_html_join("", "{}", ([piece] for piece in pieces))


# The candidates of a saved search, as rows of a table.


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A candidate's passage as it is now, and HTML of its words around the matches."""

    passage: Passage
    snippet: SafeString

    @property
    def href(self) -> str:
        return passage_url(self.passage.document_id, self.passage.start, self.passage.end)

    @property
    def page(self) -> str:
        return page_label(self.passage.page, self.passage.page_unit) if self.passage.page else ""


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """A retriever's rank and score of a candidate, and the bar of its contribution: start and width, in percent. The
    bar begins in the middle (50) and extends right if positive, left if negative.
    """

    score: RetrieverScore
    largest: float

    @property
    def width(self) -> float:
        return round(50 * min(1.0, abs(self.score.contribution) / self.largest), 1)

    @property
    def start(self) -> float:
        return 50.0 if self.score.contribution >= 0 else 50.0 - self.width


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate. ``shown`` is None if its passage was deleted, or if the viewer may not read it. ``added_parts``
    are the parts of its score without a column: bonus, boosts; ``added`` is their sum. ``moved`` is the number of
    places by which the reranker raised it.
    """

    candidate: Candidate
    shown: ShownPassage | None
    vector: ScoreBar
    lexical: ScoreBar
    added_parts: tuple[tuple[str, float], ...]
    added: float
    moved: int


def candidate_rows(trace: AnswerTrace, shown: Mapping[int, ShownPassage]) -> tuple[CandidateRow, ...]:
    """The candidates of a trace: the kept ones by rank, then the dropped ones by score, ties by chunk id.

    ``shown`` has the passages that the viewer may read, by chunk id.
    """
    contributions = [score.contribution for each in trace.candidates for score in each.retrievers.values()]
    largest = max(map(abs, contributions), default=0.0) or 1.0
    ordered = sorted(trace.candidates, key=lambda each: (each.rank is None, each.rank or 0, -each.score, each.chunk_id))
    rows = []
    for each in ordered:
        parts = (("both retrievers", each.bonus), *((boost.name, boost.contribution) for boost in each.boosts))
        rows.append(
            CandidateRow(
                each,
                shown.get(each.chunk_id),
                ScoreBar(each.retrievers[Retriever.VECTOR], largest),
                ScoreBar(each.retrievers[Retriever.LEXICAL], largest),
                tuple((name, contribution) for name, contribution in parts if contribution),
                sum(contribution for _name, contribution in parts),
                each.rerank.rank_before - each.rank if each.rerank and each.rank is not None else 0,
            )
        )
    return tuple(rows)


def used_weights(trace: SearchTrace) -> dict[str, float]:
    """The retrievers' weights for this question, which some methods choose for each question; else those
    of the plan.
    """
    used = {retriever.value: trace.weights.of(retriever) for retriever in Retriever}
    for candidate in trace.candidates:
        scores = candidate.retrievers.items()
        used.update({retriever.value: score.weight for retriever, score in scores if score.score is not None})
    return used


# What the stages of an answer are called in the panel.

STAGES = {
    "reformulate": gettext_lazy("reformulate"),
    "classify": gettext_lazy("classify and plan"),
    "legs": gettext_lazy("both retrievers"),
    "vector": gettext_lazy("vector retriever"),
    "lexical": gettext_lazy("lexical retriever"),
    "scores": gettext_lazy("missing scores"),
    "fuse": gettext_lazy("fuse"),
    "rerank": gettext_lazy("rerank"),
    "load": gettext_lazy("load passages"),
    "search": gettext_lazy("search"),
    "context": gettext_lazy("assemble the context"),
    "wait": gettext_lazy("wait for the first word"),
    "decide": gettext_lazy("decide that no document answers"),
    "write": gettext_lazy("write"),
    "check": gettext_lazy("check the sentences"),
    "answer": gettext_lazy("answer"),
    "total": gettext_lazy("total"),
}


def stage_label(name: str) -> str:
    """A stage's name for people; the trace's name for an unknown stage."""
    return str(STAGES.get(name, name.replace("_", " ")))


# The sentences of an answer and how far their sources bear them out.

PASSAGE_CHARACTERS = 220


def sentences_of(answer: Answer) -> tuple[dict[str, Any], ...]:
    """The checked sentences in the order of the answer, as they are stored, each with its ``text``, its ``reasons`` in
    words, and the ``passage`` that supports it best with its ``href``; empty if none were checked.
    """
    sources = {source["marker"]: source for source in answer.sources}
    return tuple(_sentence(answer.text, statement, sources) for statement in answer.statements)


def _sentence(text: str, statement: Mapping[str, Any], sources: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    best = statement.get("best") or {}
    source = sources.get(best.get("marker", 0))
    passage = href = ""
    if source is not None:
        start, end = best["start"], best["end"]
        words = source["content"][max(0, start - source["start"]) : max(0, end - source["start"])]
        passage = Truncator(plain(words)).chars(PASSAGE_CHARACTERS)
        href = passage_url(source["document"]["id"], start, end)
    return {
        **statement,
        "text": plain(text[statement["start"] : statement["end"]]),
        "reasons": [reason_label(reason) for reason in statement.get("reasons", ())],
        "passage": passage,
        "href": href,
    }


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


# What became of the hits of a search, for answers that quote them.


@dataclass(frozen=True, slots=True)
class HitRow:
    """A hit as a result. ``shown`` is "answer", "card" or empty; ``card`` is its number from 1, ``quote`` the place
    that is marked or stands on the card.
    """

    rank: int
    score: float
    title: str
    where: str
    href: str
    shown: str = ""
    card: int = 0
    quote: str = ""


def result_rows(answer: Answer, readable: Container[int] | None = None) -> tuple[HitRow, ...]:
    """Return the hits of a quoted answer or a refusal, best first; empty if a language model wrote the answer.

    With ``readable``, only hits with these ids of passages are returned.
    """
    if answer.generator != EXTRACTIVE or answer.computed:
        return ()
    cited = {citation.marker: citation.quote for citation in answer.citations.all()}
    cards = {found.get("chunk_id"): (number, found) for number, found in enumerate(answer.alternatives, start=1)}
    rows = []
    for rank, source in enumerate(sorted(answer.sources, key=itemgetter("score"), reverse=True), start=1):
        if readable is not None and source["chunk_id"] not in readable:
            continue
        number, card = cards.get(source["chunk_id"], (0, {}))
        quote = cited.get(source["marker"], card.get("quote", ""))
        rows.append(
            HitRow(
                rank=rank,
                score=source["score"],
                title=source["document"]["title"],
                where=place(source.get("collection", ""), source["section"], source["page"], source["page_unit"]),
                href=passage_url(source["document"]["id"], source["start"], source["end"]),
                shown="answer" if source["marker"] in cited else "card" if card else "",
                card=number,
                quote=Truncator(plain(quote)).chars(PASSAGE_CHARACTERS),
            )
        )
    return tuple(rows)


# All that the debug panel shows of one answer.


@dataclass(frozen=True, slots=True)
class Panel:
    """An answer, explained. ``lexical_matches`` is None if it was not counted; ``not_counted`` then has the reason.

    ``profile_url`` is the search profile's page if the viewer may see it, and ``playground_url`` the playground with
    this question; else empty.
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
    playground_url: str = ""
    results: tuple[HitRow, ...] = ()

    @property
    def lead(self) -> float | None:
        """The lead of the first score over the second; None with fewer results."""
        return self.results[0].score - self.results[1].score if len(self.results) > 1 else None

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
        playground_url=_playground_url(trace.query, answer, viewer),
        results=result_rows(answer, None if is_closed_to(viewer) is None else shown),
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


def _playground_url(query: str, answer: Answer, viewer: Any) -> str:
    if not viewer.is_staff or not viewer.has_perm("retrieval.view_searchprofile"):
        return ""
    parameters = {"question": query, "collection": answer.collection.slug if answer.collection else ""}
    return f"{reverse('admin:retrieval_searchprofile_playground')}?{urlencode(parameters)}"


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
