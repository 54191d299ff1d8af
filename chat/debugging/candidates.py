"""The candidates of a saved search, as rows of a table. Pure Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chat.debugging.snippets import Piece, snippet
from chat.debugging.trace import AnswerTrace, KnownPassage
from retrieval.types import Candidate, RerankScore, Retriever, RetrieverScore, SearchTrace, WordMatch


@dataclass(frozen=True, slots=True)
class Shown:
    """What the passage of a candidate says, and where it can be read; ``href`` is empty when it is gone.

    ``is_closed`` tells that it is there, and that the viewer may not read it.
    """

    pieces: tuple[Piece, ...] = ()
    href: str = ""
    page: int | None = None
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate. Bars of contributions have a start and a width, in percent.

    ``rerank`` is the reranker's opinion, None without one; ``moved`` says how many places it took the candidate up.
    ``added`` is the sum of the parts that have no column: bonus, boosts and the support of neighbours.
    """

    rank: int | None
    title: str
    section: str
    shown: Shown
    score: float
    added: float
    added_parts: tuple[tuple[str, float], ...]
    rerank: RerankScore | None
    moved: int
    vector: RetrieverScore
    lexical: RetrieverScore
    vector_start: float
    vector_width: float
    lexical_start: float
    lexical_width: float
    dropped: str
    matched_terms: tuple[str, ...] = ()
    word_matches: Sequence[WordMatch] = ()


def candidate_rows(trace: AnswerTrace, shown: Mapping[int, Shown]) -> tuple[CandidateRow, ...]:
    """The candidates of a trace: those kept by rank, then those dropped by score, ties by chunk id.

    ``shown`` has the passages by chunk id, those that the viewer may not read as closed. A candidate that it lacks is
    gone, and shows the beginning that the trace has kept.
    """
    contributions = [score.contribution for each in trace.candidates for score in each.retrievers.values()]
    largest = max(map(abs, contributions), default=0.0) or 1.0
    ordered = sorted(trace.candidates, key=lambda each: (each.rank is None, each.rank or 0, -each.score, each.chunk_id))
    return tuple(_row(each, largest, shown.get(each.chunk_id), trace.passages.get(each.chunk_id)) for each in ordered)


def used_weights(trace: SearchTrace) -> dict[str, float]:
    """The retrievers' weights for this question, which a method may choose anew each time; else those of the plan."""
    used = {retriever.value: trace.weights.of(retriever) for retriever in Retriever}
    for candidate in trace.candidates:
        scores = candidate.retrievers.items()
        used.update({retriever.value: score.weight for retriever, score in scores if score.score is not None})
    return used


def _row(candidate: Candidate, largest: float, shown: Shown | None, known: KnownPassage | None) -> CandidateRow:
    rerank = candidate.rerank
    parts = (
        ("both legs", candidate.bonus),
        *((boost.name, boost.contribution) for boost in candidate.boosts),
        ("neighbours", candidate.support),
    )
    added = tuple((name, contribution) for name, contribution in parts if contribution)
    vector, lexical = candidate.retrievers[Retriever.VECTOR], candidate.retrievers[Retriever.LEXICAL]
    vector_start, vector_width = _bar(vector.contribution, largest)
    lexical_start, lexical_width = _bar(lexical.contribution, largest)
    return CandidateRow(
        rank=candidate.rank,
        title=known.title if known else "",
        section=known.section if known else "",
        shown=shown or Shown(snippet(known.preview if known else "")),
        score=candidate.score,
        added=sum(contribution for _, contribution in added),
        added_parts=added,
        rerank=rerank,
        moved=rerank.rank_before - candidate.rank if rerank and candidate.rank is not None else 0,
        vector=vector,
        lexical=lexical,
        vector_start=vector_start,
        vector_width=vector_width,
        lexical_start=lexical_start,
        lexical_width=lexical_width,
        dropped=candidate.dropped,
        matched_terms=candidate.matched_terms,
        word_matches=sorted(candidate.word_matches or (), key=lambda match: -match.weight),
    )


def _bar(contribution: float, largest: float) -> tuple[float, float]:
    """Start and width of a bar from the middle (50): to the right for what helped, to the left for what cost."""
    width = round(50 * min(1.0, abs(contribution) / largest), 1)
    return (50.0 if contribution >= 0 else 50.0 - width), width
