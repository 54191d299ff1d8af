"""Repeat the search of an answer with today's documents, and compare the ranks."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from chat.conversations.history import list_turns_before
from chat.conversations.rights import may_read_all_answers
from chat.debugging.candidates import PassageWithSnippet, load_readable_passages
from chat.models import Answer
from chat.pages.access import admit_visitors, get_explainable_answer
from chat.types import AnswerTrace, read_trace
from core.exceptions import RagsiteError
from retrieval.exceptions import InvalidQuery
from retrieval.profile_settings import ImproperProfile
from retrieval.rights.chosen_filters import build_search_restrictions
from retrieval.rights.search_filters import build_filters, list_matching_documents
from retrieval.search.index_state import read_index_state
from retrieval.search.pipeline import search
from retrieval.search.profiles import profiles
from retrieval.search.profiles.profiles import BUILT_IN, NamedProfile
from retrieval.search.search_places import wait_for_search_slot
from retrieval.search.trace import IndexState, SearchTrace
from retrieval.types import Candidate, SearchFilters, SearchMethod


@dataclass(frozen=True, slots=True)
class RankThenAndNow:
    """A candidate passage with its rank in the answer's search and in the repeated search.

    ``shown`` is None if the passage is deleted or the viewer may not read it.
    """

    then: Candidate | None
    now: Candidate | None
    shown: PassageWithSnippet | None

    @property
    def rank_change(self) -> str:
        if self.then is None or self.now is None:
            return "new" if self.then is None else "gone"
        before, after = (each.rank or float("inf") for each in (self.then, self.now))
        return "up" if after < before else "down" if after > before else "same"


@dataclass(frozen=True, slots=True)
class RankComparison:
    """The ranks of passages when the question was answered, and when the same search is repeated now.

    ``changes`` are sentences about changed settings and documents; ``error`` is why the search failed.
    """

    rows: tuple[RankThenAndNow, ...] = ()
    trace: SearchTrace | None = None
    changes: tuple[str, ...] = ()
    error: str = ""

    def count_changes(self, change: str) -> int:
        return sum(row.rank_change == change for row in self.rows)

    @property
    def new_passage_count(self) -> int:
        return self.count_changes("new")

    @property
    def lost_hit_count(self) -> int:
        return self.count_changes("gone")

    @property
    def unchanged_passage_count(self) -> int:
        return self.count_changes("same")

    @property
    def moved_count(self) -> int:
        return len(self.rows) - self.new_passage_count - self.lost_hit_count - self.unchanged_passage_count


def search_again(answer: Answer, viewer: Any) -> RankComparison | None:
    """Repeat the search of an answer with its settings and filters, but with the viewer's rights.

    Return None if the answer had no search. Nothing is saved.
    """
    then = read_trace(answer.trace)
    if then is None:
        return None
    profile, lost = _find_profile_of_answer(answer, then)
    try:
        filters = _build_filters(answer, viewer)
        with wait_for_search_slot():
            result = search(
                answer.question,
                filters,
                method=SearchMethod(answer.method) if answer.method else None,
                profile=profile,
                history=list_turns_before(answer, viewer),
            )
    except InvalidQuery as error:
        return RankComparison(error=str(error))
    except RagsiteError as error:
        return RankComparison(error=str(error) if may_read_all_answers(viewer) else _("The search did not answer."))
    now = result.trace if may_read_all_answers(viewer) else result.trace.copy_without_errors()
    shown = load_readable_passages((*then.candidates, *now.candidates), viewer)
    changes = (*lost, *_describe_index_changes(answer, then, filters), *_compare_plans(answer, then, now))
    return RankComparison(_pair_candidates(then.candidates, now.candidates, shown), now, changes)


def _build_filters(answer: Answer, viewer: Any) -> SearchFilters:
    restrictions = build_search_restrictions(answer.asked_filters)
    collection = answer.collection if answer.document is None else answer.document.collection
    if answer.document is not None:
        restrictions["documents"] = tuple(answer.document.list_own_and_member_ids())
    return build_filters(viewer, collection.slug if collection else "", **restrictions)


def _find_profile_of_answer(answer: Answer, then: AnswerTrace) -> tuple[NamedProfile, tuple[str, ...]]:
    """Return the answer's search profile, or if it was deleted, the active one with a sentence that says so."""
    if answer.profile_version is not None:
        try:
            return profiles.build_named_profile(answer.profile_version), ()
        except ImproperProfile:
            pass
    elif then.profile.startswith(BUILT_IN):
        return NamedProfile(BUILT_IN, profiles.get_built_in_profile()), ()
    return profiles.active_profile(), (_("The profile %s is gone; the active one was used.") % then.profile,)


def _describe_index_changes(answer: Answer, then: AnswerTrace, filters: SearchFilters) -> Iterable[str]:
    """Yield sentences about changes, after the answer was created, in documents that the viewer may read."""
    now: IndexState | None = read_index_state(filters.collections)
    is_changed = None
    if then.index is not None and now is not None:
        before = {pk: version for pk, version in then.index.versions.items() if int(pk) in filters.collections}
        is_changed = before != dict(now.versions)
        if then.index.embedder != now.embedder:
            yield _("The embedder was %(before)s, and is %(after)s.") % {
                "before": then.index.embedder or "–",
                "after": now.embedder or "–",
            }
    read = list_matching_documents(SearchFilters(collections=filters.collections, readers=filters.readers))
    since = read.filter(ingested_at__gt=answer.created_at).aggregate(count=Count("pk"), last=Max("ingested_at"))
    if since["count"]:
        sentence = ngettext(
            "%(count)d document was read since, on %(day)s.",
            "%(count)d documents were read since, the last on %(day)s.",
            since["count"],
        )
        day = date_format(localtime(since["last"]), "DATETIME_FORMAT")
        yield sentence % {"count": since["count"], "day": day}
    elif is_changed:
        yield _("The index has changed since: documents were deleted, or their metadata or questions were edited.")
    if is_changed is None:
        yield _("This answer is older than the record of the index: documents deleted since are not known.")
    elif not is_changed and not since["count"]:
        yield _("The index has not changed since.")


def _compare_plans(answer: Answer, then: AnswerTrace, now: SearchTrace) -> Iterable[str]:
    """Yield a sentence for each setting that differs between the answer's search and the search repeated now."""
    in_force = profiles.active_profile()
    if in_force.version_id != answer.profile_version_id:
        yield _("Another profile is active now: %(now)s; the answer used %(then)s.") % {
            "now": in_force.name,
            "then": then.profile or "–",
        }
    plans = [
        {
            _("search method"): trace.search_method,
            _("weights (vector, lexical)"): f"{trace.weights.vector:g}, {trace.weights.lexical:g}",
            _("depth"): trace.depth,
            _("top k"): trace.top_k,
            _("threshold"): "–" if trace.score_threshold is None else f"{trace.score_threshold:g}",
            _("reranker"): trace.rerank.reranker if trace.rerank is not None else "–",
            _("searched as"): trace.query,
        }
        for trace in (then, now)
    ]
    for name, before in plans[0].items():
        if before != plans[1][name]:
            words = {"name": name, "before": before, "after": plans[1][name]}
            yield _("%(name)s: %(before)s then, %(after)s now.") % words


def _pair_candidates(
    then: Iterable[Candidate], now: Iterable[Candidate], shown: Mapping[int, PassageWithSnippet]
) -> tuple[RankThenAndNow, ...]:
    before, after = ({each.chunk_id: each for each in found} for found in (then, now))
    last = float("inf")

    def get_sort_key(pk: int) -> tuple[float, float, float, int]:
        earlier, later = before.get(pk), after.get(pk)
        score = max(each.score for each in (earlier, later) if each is not None)
        return (later and later.rank) or last, (earlier and earlier.rank) or last, -score, pk

    return tuple(
        RankThenAndNow(before.get(pk), after.get(pk), shown.get(pk))
        for pk in sorted({**before, **after}, key=get_sort_key)
    )


@require_GET
@admit_visitors
def show_current_ranks(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    answer = get_explainable_answer(request, answer_id)
    context = {"answer": answer, "ranks": search_again(answer, request.user)}
    template = "chat/_debug_now.html" if request.htmx else "chat/debug_now.html"  # type: ignore[attr-defined]
    return render(request, template, context)
