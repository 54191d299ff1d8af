"""A saved search trace, prepared for the debug panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# PostgreSQL keeps no order of keys, so the order of the work is told here; what is not listed follows.
_STAGES = (
    "reformulate", "classify", "lexical", "vector", "legs", "scores", "fuse", "rerank", "support", "load", "searched",
    "first_token", "total",
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
    """One candidate. ``vector_width`` and ``lexical_width`` are the bars of the contributions, in percent.

    ``rerank`` is the reranker's opinion, None without one; ``moved`` says how many places it took the candidate up.
    ``added`` is the sum of the parts that have no column: bonus, boosts and the support of neighbours.
    """

    rank: int | None
    title: str
    section: str
    preview: str
    score: float
    added: float
    added_parts: list[tuple[str, float]]
    rerank: Mapping[str, Any] | None
    moved: int
    vector: Mapping[str, Any]
    lexical: Mapping[str, Any]
    vector_start: float
    vector_width: float
    lexical_start: float
    lexical_width: float
    matched_terms: list[str]
    word_matches: list[Mapping[str, Any]]
    dropped: str


@dataclass(frozen=True, slots=True)
class Explained:
    trace: Mapping[str, Any]
    stages: list[Stage]
    answer_stages: list[Stage]
    rows: list[CandidateRow]
    assembly: list[tuple[str, Any]]
    used_weights: Mapping[str, float]


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
        used_weights=_used_weights(trace),
        assembly=[(name.replace("_", " "), value) for name, value in _in_order(trace.get("assembly", {}), _ASSEMBLY)],
    )


def _used_weights(trace: Mapping[str, Any]) -> dict[str, float]:
    """The legs' weights for this question, which a method may choose anew each time; those of the plan without any."""
    used = dict(trace.get("weights", {}))
    for candidate in trace.get("candidates", []):
        used.update({leg: score["weight"] for leg, score in candidate["legs"].items() if score["score"] is not None})
    return used


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
    rerank = candidate.get("rerank")
    added = [
        (name, contribution)
        for name, contribution in (
            ("both legs", candidate.get("bonus", 0.0)),
            *((boost["name"], boost["contribution"]) for boost in candidate.get("boosts", [])),
            ("neighbours", candidate.get("support", 0.0)),
        )
        if contribution
    ]
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
        matched_terms=list(candidate["matched_terms"]),
        word_matches=sorted(candidate.get("word_matches", []), key=lambda match: -match["weight"]),
        dropped=candidate["dropped"],
    )


def _bar(contribution: float, largest: float) -> tuple[float, float]:
    """Start and width of a bar from the middle (50): to the right for what helped, to the left for what cost."""
    width = round(50 * min(1.0, abs(contribution) / largest), 1)
    return (50.0 if contribution >= 0 else 50.0 - width), width
