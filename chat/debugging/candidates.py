"""The candidates of a saved search, as rows of a table. Pure Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chat.debugging.snippets import Piece, snippet

_SILENT: Mapping[str, Any] = {"rank": None, "score": None, "normalized": None, "weight": 0.0, "contribution": 0.0}


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
    rerank: Mapping[str, Any] | None
    moved: int
    vector: Mapping[str, Any]
    lexical: Mapping[str, Any]
    vector_start: float
    vector_width: float
    lexical_start: float
    lexical_width: float
    dropped: str
    matched_terms: tuple[str, ...] = ()
    word_matches: Sequence[Mapping[str, Any]] = field(default_factory=tuple)


def candidate_rows(trace: Mapping[str, Any], shown: Mapping[int, Shown]) -> tuple[CandidateRow, ...]:
    """The candidates of a trace: those kept by rank, then those dropped by score, ties by chunk id.

    ``shown`` has the passages by chunk id, those that the viewer may not read as closed. A candidate that it lacks is
    gone, and shows the beginning that the trace has kept.
    """
    candidates = trace.get("candidates", [])
    largest = max((_extent(candidate) for candidate in candidates), default=0.0) or 1.0
    kept = sorted((c for c in candidates if c["rank"] is not None), key=lambda c: c["rank"])
    dropped = sorted((c for c in candidates if c["rank"] is None), key=lambda c: (-c["score"], c["chunk_id"]))
    return tuple(_row(candidate, largest, shown.get(candidate["chunk_id"])) for candidate in [*kept, *dropped])


def used_weights(trace: Mapping[str, Any]) -> dict[str, float]:
    """The retrievers' weights for this question, which a method may choose anew each time; those of the plan without any."""
    used = dict(trace.get("weights", {}))
    for candidate in trace.get("candidates", []):
        used.update(
            {retriever: score["weight"] for retriever, score in candidate["legs"].items() if score["score"] is not None}
        )
    return used


def _extent(candidate: Mapping[str, Any]) -> float:
    """The longest of the candidate's bars."""
    return max((abs(float(retriever["contribution"])) for retriever in candidate["legs"].values()), default=0.0)


def _row(candidate: Mapping[str, Any], largest: float, shown: Shown | None) -> CandidateRow:
    rerank = candidate.get("rerank")
    parts = (
        ("both legs", candidate.get("bonus", 0.0)),
        *((boost["name"], boost["contribution"]) for boost in candidate.get("boosts", [])),
        ("neighbours", candidate.get("support", 0.0)),
    )
    added = tuple((name, contribution) for name, contribution in parts if contribution)
    vector = candidate["legs"].get("vector", _SILENT)
    lexical = candidate["legs"].get("lexical", _SILENT)
    vector_start, vector_width = _bar(vector["contribution"], largest)
    lexical_start, lexical_width = _bar(lexical["contribution"], largest)
    return CandidateRow(
        rank=candidate["rank"],
        title=candidate.get("title", ""),
        section=candidate.get("section", ""),
        shown=shown or Shown(snippet(candidate.get("preview", ""))),
        score=candidate["score"],
        added=sum(contribution for _, contribution in added),
        added_parts=added,
        rerank=rerank,
        moved=rerank["rank_before"] - candidate["rank"] if rerank and candidate["rank"] is not None else 0,
        vector=vector,
        lexical=lexical,
        vector_start=vector_start,
        vector_width=vector_width,
        lexical_start=lexical_start,
        lexical_width=lexical_width,
        dropped=candidate["dropped"],
        matched_terms=tuple(candidate["matched_terms"]),
        word_matches=sorted(candidate.get("word_matches", []), key=lambda match: -match["weight"]),
    )


def _bar(contribution: float, largest: float) -> tuple[float, float]:
    """Start and width of a bar from the middle (50): to the right for what helped, to the left for what cost."""
    width = round(50 * min(1.0, abs(contribution) / largest), 1)
    return (50.0 if contribution >= 0 else 50.0 - width), width
