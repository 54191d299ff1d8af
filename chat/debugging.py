"""A saved search trace, prepared for the debug panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# PostgreSQL keeps no order of keys, so the order of the work is told here; what is not listed follows.
_STAGES = (
    "classify", "lexical", "vector", "legs", "scores", "fuse", "rerank", "load", "searched", "first_token", "total",
)  # fmt: skip
_ASSEMBLY = (
    "hits", "repeats_dropped", "over_budget_dropped", "neighbours_added", "passages", "blocks", "documents",
    "overlap_characters_stripped", "tokens", "budget_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stage:
    """``share`` is the stage's part of the longest one, in percent."""

    name: str
    milliseconds: float
    share: float


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate. ``vector_width`` and ``lexical_width`` are the bars of the contributions, in percent."""

    rank: int | None
    title: str
    section: str
    preview: str
    score: float
    bonus: float
    vector: Mapping[str, Any]
    lexical: Mapping[str, Any]
    vector_start: float
    vector_width: float
    lexical_start: float
    lexical_width: float
    matched_terms: list[str]
    dropped: str


@dataclass(frozen=True, slots=True)
class Explained:
    trace: Mapping[str, Any]
    stages: list[Stage]
    answer_stages: list[Stage]
    rows: list[CandidateRow]
    assembly: list[tuple[str, Any]]


def explained(trace: Mapping[str, Any], answer_timings_ms: Mapping[str, float]) -> Explained | None:
    """The trace in the order in which the panel shows it; None when nothing was searched."""
    if not trace:
        return None
    timings = trace.get("timings_ms", {})
    candidates = trace.get("candidates", [])
    largest = max((_extent(candidate) for candidate in candidates), default=0.0) or 1.0
    kept = sorted((c for c in candidates if c["rank"] is not None), key=lambda c: c["rank"])
    dropped = sorted((c for c in candidates if c["rank"] is None), key=lambda c: -c["score"])
    return Explained(
        trace=trace,
        stages=_stages(timings),
        answer_stages=_stages(answer_timings_ms),
        rows=[_row(candidate, largest) for candidate in [*kept, *dropped]],
        assembly=[(name.replace("_", " "), value) for name, value in _in_order(trace.get("assembly", {}), _ASSEMBLY)],
    )


def _stages(timings: Mapping[str, float]) -> list[Stage]:
    longest = max(timings.values(), default=0.0) or 1.0
    return [
        Stage(name.replace("_", " "), milliseconds, round(100 * milliseconds / longest, 1))
        for name, milliseconds in _in_order(timings, _STAGES)
    ]


def _in_order(named: Mapping[str, Any], order: Sequence[str]) -> list[tuple[str, Any]]:
    places = {name: place for place, name in enumerate(order)}
    return sorted(named.items(), key=lambda entry: (places.get(entry[0], len(places)), entry[0]))


def _extent(candidate: Mapping[str, Any]) -> float:
    """The longest of the candidate's bars."""
    return max((abs(float(leg["contribution"])) for leg in candidate["legs"].values()), default=0.0)


def _row(candidate: Mapping[str, Any], largest: float) -> CandidateRow:
    silent: Mapping[str, Any] = {"rank": None, "score": None, "normalized": None, "weight": 0.0, "contribution": 0.0}
    vector = candidate["legs"].get("vector", silent)
    lexical = candidate["legs"].get("lexical", silent)
    vector_start, vector_width = _bar(vector["contribution"], largest)
    lexical_start, lexical_width = _bar(lexical["contribution"], largest)
    return CandidateRow(
        rank=candidate["rank"],
        title=candidate.get("title", ""),
        section=candidate.get("section", ""),
        preview=candidate.get("preview", ""),
        score=candidate["score"],
        bonus=candidate["bonus"],
        vector=vector,
        lexical=lexical,
        vector_start=vector_start,
        vector_width=vector_width,
        lexical_start=lexical_start,
        lexical_width=lexical_width,
        matched_terms=list(candidate["matched_terms"]),
        dropped=candidate["dropped"],
    )


def _bar(contribution: float, largest: float) -> tuple[float, float]:
    """Start and width of a bar from the middle (50): to the right for what helped, to the left for what cost."""
    width = round(50 * min(1.0, abs(contribution) / largest), 1)
    return (50.0 if contribution >= 0 else 50.0 - width), width
