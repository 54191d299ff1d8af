"""Search for one question with two search profiles, to show both results on one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.utils.text import Truncator
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.exceptions import RagsiteError
from retrieval.passage_address import build_passage_url
from retrieval.search.assembly import assemble_context
from retrieval.search.passage_rows import load_neighbours, load_passages
from retrieval.search.pipeline import search
from retrieval.search.profiles.profiles import NamedProfile
from retrieval.search.search_places import wait_for_search_slot
from retrieval.search.trace import SearchTrace
from retrieval.types import SILENT, AssembledContext, Candidate, Passage, Retriever, SearchFilters

RETRIEVER_NAMES = {Retriever.VECTOR: _("vector"), Retriever.LEXICAL: _("lexical")}
PREVIEW_WORDS = 30
MOST_DROPPED = 30


@dataclass(frozen=True, slots=True)
class ScorePartBar:
    """A part of a passage's score, drawn as a bar.

    ``start``, ``width`` and ``axis`` (the position of 0) are percentages.
    """

    name: str
    css_class: str
    contribution: float
    rank: str = ""
    score: float | None = None
    start: float = 0.0
    width: float = 0.0
    axis: float = 0.0


@dataclass(frozen=True, slots=True)
class ComparedHit:
    """A passage that was found with one profile. ``other_rank`` is its rank with the other profile, or None."""

    candidate: Candidate
    passage: Passage
    address: str
    preview: str
    parts: tuple[ScorePartBar, ...]
    other_rank: int | None = None

    @property
    def ranks_gained(self) -> int:
        """Number of ranks that the passage is higher with this profile; 0 if only one profile ranks it."""
        if self.candidate.rank is None or self.other_rank is None:
            return 0
        return self.other_rank - self.candidate.rank

    @property
    def ranks_moved(self) -> int:
        return abs(self.ranks_gained)


@dataclass(frozen=True, slots=True)
class ProfileResult:
    profile: NamedProfile
    error: str = ""
    trace: SearchTrace | None = None
    rows: tuple[ComparedHit, ...] = ()
    dropped: tuple[ComparedHit, ...] = ()
    dropped_total: int = 0
    context: AssembledContext | None = None

    @property
    def ranks(self) -> dict[int, int]:
        return {row.candidate.chunk_id: row.candidate.rank for row in self.rows if row.candidate.rank is not None}


@dataclass(frozen=True, slots=True)
class ProfileComparison:
    sides: tuple[ProfileResult, ProfileResult]

    @property
    def shared_hit_count(self) -> int:
        first, second = self.sides
        return len(first.ranks.keys() & second.ranks.keys())

    @property
    def has_same_ranking(self) -> bool:
        first, second = self.sides
        return first.ranks == second.ranks and not (first.error or second.error)


def compare_profiles(
    question: str,
    filters: SearchFilters,
    profiles: tuple[NamedProfile, NamedProfile],
    top_k: int | None = None,
) -> ProfileComparison:
    """Return the results of both search profiles. The first search fills caches, so it takes longer."""
    first, second = (_search_with(question, filters, profile, top_k) for profile in profiles)
    return ProfileComparison((_add_ranks_of_other_result(first, second), _add_ranks_of_other_result(second, first)))


def _search_with(question: str, filters: SearchFilters, profile: NamedProfile, top_k: int | None) -> ProfileResult:
    try:
        with wait_for_search_slot():
            result = search(question, filters, profile=profile, top_k=top_k)
    except RagsiteError as error:
        return ProfileResult(profile, error=str(error))
    context = assemble_context(
        result.hits,
        load_neighbours,
        budget_tokens=profile.settings.context_budget_tokens,
        expand=profile.settings.context_neighbours,
        blocks=profile.settings.context_blocks,
    )
    dropped = [candidate for candidate in result.trace.candidates if candidate.rank is None]
    shown = dropped[:MOST_DROPPED]
    passages = {
        **{hit.passage.chunk_id: hit.passage for hit in result.hits},
        **load_passages([candidate.chunk_id for candidate in shown]),
    }
    kept = [candidate for candidate in result.trace.candidates if candidate.rank is not None]
    return ProfileResult(
        profile=profile,
        trace=result.trace,
        rows=_build_rows(kept, passages),
        dropped=_build_rows(shown, passages),
        dropped_total=len(dropped),
        context=context,
    )


def _build_rows(candidates: Sequence[Candidate], passages: Mapping[int, Passage]) -> tuple[ComparedHit, ...]:
    parts_of = {candidate.chunk_id: _list_score_parts(candidate) for candidate in candidates}
    contributions = [part.contribution for parts in parts_of.values() for part in parts]
    largest = max(map(abs, contributions), default=0.0) or 1.0
    axis = 50.0 if any(contribution < 0 for contribution in contributions) else 0.0
    return tuple(
        ComparedHit(
            candidate=candidate,
            passage=passage,
            address=build_passage_url(passage.document_id, passage.start, passage.end),
            preview=Truncator(" ".join(passage.content.split())).words(PREVIEW_WORDS),
            parts=tuple(_draw_bar(part, largest, axis) for part in parts_of[candidate.chunk_id]),
        )
        for candidate in candidates
        if (passage := passages.get(candidate.chunk_id)) is not None
    )


def _add_ranks_of_other_result(result: ProfileResult, other_result: ProfileResult) -> ProfileResult:
    ranks = other_result.ranks
    return replace(
        result,
        rows=tuple(replace(row, other_rank=ranks.get(row.candidate.chunk_id)) for row in result.rows),
        dropped=tuple(replace(row, other_rank=ranks.get(row.candidate.chunk_id)) for row in result.dropped),
    )


def _list_score_parts(candidate: Candidate) -> list[ScorePartBar]:
    alone = candidate.rerank is not None and candidate.rerank.alone
    parts = [
        ScorePartBar(
            str(label),
            retriever.value,
            0.0 if alone else score.contribution,
            f"#{score.rank}" if score.rank else "–",
            score.score,
        )
        for retriever, label in RETRIEVER_NAMES.items()
        if (score := candidate.retrievers[retriever]) != SILENT
    ]
    if candidate.bonus and not alone:
        parts.append(ScorePartBar(_t("both retrievers"), "bonus", candidate.bonus))
    if not alone:
        parts += [ScorePartBar(boost.name, "boost", boost.contribution) for boost in candidate.boosts]
    if candidate.rerank is not None:
        parts.append(
            ScorePartBar(_t("reranker"), "rerank", candidate.rerank.contribution, score=candidate.rerank.score)
        )
    return parts


def _draw_bar(part: ScorePartBar, largest: float, axis: float) -> ScorePartBar:
    width = round((100.0 - axis) * min(1.0, abs(part.contribution) / largest), 1)
    return replace(part, start=axis if part.contribution >= 0 else axis - width, width=width, axis=axis)
