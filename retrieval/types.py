"""The vocabulary of retrieval: what travels between its stages.

Pure Python, frozen, and free of Django, so that every rule that ranks can be tested in milliseconds.
Ranks start at 1. A score is better when higher. ``None`` means "this leg did not return the chunk",
never zero: a chunk that a leg did not return contributes nothing there, and no rank is made up for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class QueryClass(StrEnum):
    """What kind of question this is; chooses the weights of the `adaptive` method."""

    CONCEPTUAL = "conceptual"
    CODE = "code"
    TROUBLESHOOTING = "troubleshooting"
    COMPARISON = "comparison"
    DEFAULT = "default"


class SearchMethod(StrEnum):
    """How the two legs become one ranking."""

    LEXICAL = "lexical"
    VECTOR = "vector"
    RRF = "rrf"
    LINEAR = "linear"
    ZSCORE = "zscore"
    WEIGHTED = "weighted"
    ADAPTIVE = "adaptive"


class Leg(StrEnum):
    """One of the two rankings that are fused."""

    LEXICAL = "lexical"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Weights:
    """Share of each leg in the fused score; non-negative, at least one positive."""

    vector: float
    lexical: float

    def __post_init__(self) -> None:
        if self.vector < 0 or self.lexical < 0 or self.vector + self.lexical <= 0:
            raise ValueError(f"Weights must be non-negative and not both zero, not {self}.")

    def of(self, leg: Leg) -> float:
        return self.vector if leg is Leg.VECTOR else self.lexical


@dataclass(frozen=True, slots=True)
class Classification:
    """The class of a question and the rule that decided it, for the explanation."""

    query_class: QueryClass
    rule: str


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Restrictions on the chunks that may be returned. Empty means "everything the caller may read"."""

    collections: tuple[int, ...] = ()
    documents: tuple[int, ...] = ()
    languages: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.documents or self.languages or self.metadata)


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Every number that shapes one search, fixed before the first query runs.

    ``depth`` is the number of chunks each leg hands to fusion, ``top_k`` the number returned,
    ``score_threshold`` a lower bound on the *final* score (never on a leg's).
    """

    method: SearchMethod
    weights: Weights
    top_k: int = 8
    depth: int = 50
    rrf_k: int = 60
    both_legs_bonus: float = 0.1
    score_threshold: float | None = None
    leg_timeout_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk as one leg returned it. ``rank`` starts at 1; ``score`` is the leg's own, higher is better."""

    chunk_id: int
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """One leg's answer, best first. Ties are broken by chunk id, so the same corpus gives the same order."""

    leg: Leg
    chunks: tuple[RankedChunk, ...]
    matched_terms: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LegScore:
    """What one leg said of one candidate, and what that was worth.

    ``rank`` is None when the leg's list, cut at the plan's depth, did not hold the chunk; ``score`` can still be
    known (both scores of every candidate are looked up when fusion or the explanation asks for them).
    ``contribution`` is this leg's part of the fused score; contributions and bonus sum to it.
    """

    rank: int | None
    score: float | None
    normalized: float | None
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class FusedChunk:
    """A candidate after fusion: ``score`` = sum of the legs' contributions + ``bonus``."""

    chunk_id: int
    score: float
    legs: Mapping[Leg, LegScore]
    bonus: float = 0.0


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with what is needed to show and cite it. ``content`` is the document's ``text[start:end]``."""

    chunk_id: int
    document_id: int
    document_title: str
    document_url: str
    source: str
    collection: str
    ordinal: int
    start: int
    end: int
    page: int | None
    heading_path: tuple[str, ...]
    content: str
    content_hash: str
    token_count: int

    @property
    def section(self) -> str:
        """Headings above the passage, outermost first; empty when there are none."""
        return " › ".join(self.heading_path)


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage in the result. ``rank`` starts at 1."""

    rank: int
    score: float
    passage: Passage
    legs: Mapping[Leg, LegScore]
    bonus: float = 0.0
    matched_terms: tuple[str, ...] = ()


class LegStatus(StrEnum):
    """How a leg did. Only `ok` contributed to the result."""

    OK = "ok"
    OFF = "off"
    FAILED = "failed"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class LegTrace:
    """One leg's part of a search. ``error`` is for engineers, never for visitors."""

    leg: Leg
    status: LegStatus
    returned: int = 0
    milliseconds: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class CandidateTrace:
    """Why a candidate stands where it stands. ``rank`` is None when it was ``dropped``, which says why."""

    chunk_id: int
    rank: int | None
    score: float
    legs: Mapping[Leg, LegScore]
    bonus: float = 0.0
    matched_terms: tuple[str, ...] = ()
    dropped: str = ""


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """The whole explanation of one search; debug panel, API and command line render the same one."""

    question: str
    query: str
    classification: Classification
    plan: SearchPlan
    search_method: str
    legs: tuple[LegTrace, ...]
    candidates: tuple[CandidateTrace, ...]
    timings_ms: Mapping[str, float]

    @property
    def degraded(self) -> tuple[str, ...]:
        """Legs that should have answered and did not."""
        return tuple(leg.leg.value for leg in self.legs if leg.status in (LegStatus.FAILED, LegStatus.LATE))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Passages, best first, and the explanation of their order."""

    hits: tuple[Hit, ...]
    trace: SearchTrace


@dataclass(frozen=True, slots=True)
class ContextBlock:
    """A stretch of one document that goes into the context: a hit, what it was merged with, and its neighbours.

    ``content`` is the document's ``text[start:end]``, but for the kind of white space between two passages.
    ``passages`` are those it was put together from, in reading order; ``best`` is the one that ranked highest.
    """

    best: Passage
    passages: tuple[Passage, ...]
    content: str
    start: int
    end: int
    score: float
    tokens: int

    def passage_at(self, offset: int) -> Passage:
        """The passage that holds this offset of the document; ``best`` where none does."""
        if self.best.start <= offset < self.best.end:
            return self.best
        return next((passage for passage in self.passages if passage.start <= offset < passage.end), self.best)


@dataclass(frozen=True, slots=True)
class AssembledContext:
    """Blocks in the order in which they are numbered and shown to a model, and how they came about."""

    blocks: tuple[ContextBlock, ...]
    statistics: Mapping[str, int]
