"""The candidates of a saved search, as rows of a table. Pure Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chat.answer_trace import AnswerTrace, KnownPassage
from chat.debugging.snippets import SnippetPart, snippet
from retrieval.search.trace import SearchTrace
from retrieval.types import Candidate, Retriever, RetrieverScore

UNKNOWN = KnownPassage(title="", section="", preview="")


@dataclass(frozen=True, slots=True)
class Shown:
    """What the passage of a candidate says, and where it can be read; ``href`` is empty when it is gone.

    ``is_closed`` tells that it is there, and that the viewer may not read it.
    """

    pieces: tuple[SnippetPart, ...] = ()
    href: str = ""
    page: str = ""
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """What a retriever said of a candidate, and the bar of its contribution: start and width, in percent."""

    score: RetrieverScore
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate. ``added_parts`` are those of its score that have no column: bonus, boosts."""

    candidate: Candidate
    known: KnownPassage
    shown: Shown
    added_parts: tuple[tuple[str, float], ...]
    vector: ScoreBar
    lexical: ScoreBar

    @property
    def added(self) -> float:
        return sum(contribution for _, contribution in self.added_parts)

    @property
    def moved(self) -> int:
        """How many places the reranker took the candidate up."""
        rank, rerank = self.candidate.rank, self.candidate.rerank
        return rerank.rank_before - rank if rerank and rank is not None else 0


def candidate_rows(trace: AnswerTrace, shown: Mapping[int, Shown]) -> tuple[CandidateRow, ...]:
    """The candidates of a trace: those kept by rank, then those dropped by score, ties by chunk id.

    ``shown`` has the passages by chunk id, those that the viewer may not read as closed. A candidate that it lacks is
    gone, and shows the beginning that the trace has kept.
    """
    contributions = [score.contribution for each in trace.candidates for score in each.retrievers.values()]
    largest = max(map(abs, contributions), default=0.0) or 1.0
    ordered = sorted(trace.candidates, key=lambda each: (each.rank is None, each.rank or 0, -each.score, each.chunk_id))
    return tuple(
        _row(each, largest, shown.get(each.chunk_id), trace.passages.get(each.chunk_id, UNKNOWN)) for each in ordered
    )


def used_weights(trace: SearchTrace) -> dict[str, float]:
    """The retrievers' weights for this question, which a method may choose anew each time; else those of the plan."""
    used = {retriever.value: trace.weights.of(retriever) for retriever in Retriever}
    for candidate in trace.candidates:
        scores = candidate.retrievers.items()
        used.update({retriever.value: score.weight for retriever, score in scores if score.score is not None})
    return used


def _row(candidate: Candidate, largest: float, shown: Shown | None, known: KnownPassage) -> CandidateRow:
    parts = (
        ("both retrievers", candidate.bonus),
        *((boost.name, boost.contribution) for boost in candidate.boosts),
    )
    return CandidateRow(
        candidate,
        known,
        shown or Shown(snippet(known.preview)),
        tuple((name, contribution) for name, contribution in parts if contribution),
        vector=_bar(candidate.retrievers[Retriever.VECTOR], largest),
        lexical=_bar(candidate.retrievers[Retriever.LEXICAL], largest),
    )


def _bar(score: RetrieverScore, largest: float) -> ScoreBar:
    """A bar from the middle (50): to the right for what helped, to the left for what cost."""
    width = round(50 * min(1.0, abs(score.contribution) / largest), 1)
    return ScoreBar(score, 50.0 if score.contribution >= 0 else 50.0 - width, width)
